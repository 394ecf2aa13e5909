import Base
import Testing

@testable import Engine

@Suite struct ContactIndexTests {
  /// An index of these contacts, numbered from 0.
  private func index(_ contacts: [(name: String, municipality: String)]) -> ContactIndex {
    let index = ContactIndex(org: [1], version: 1)
    for (number, contact) in contacts.enumerated() {
      index.append(id(number), name: contact.name, municipality: contact.municipality)
    }
    index.sort()
    return index
  }

  private func numbers(_ index: ContactIndex, _ query: String, limit: Int = 50) -> [Int] {
    index.search(query, limit: limit).tags.map { Int($0.low & 0xFFFF) }
  }

  @Test func theBetterFitComesFirst() {
    // Given a contact for each rank, sorted by name the other way round
    let index = index([
      ("Zoe Anker", ""),  // begins with the query
      ("Ylva Zoega", ""),  // a later word begins with it
      ("Xazo", ""),  // inside the name
      ("Bo", "Zotown"),  // the municipality begins with it
      ("Al", "Amzo"),  // inside the municipality
      ("Aa", "Oslo"),
    ])
    // When, then
    #expect(numbers(index, "zo") == [0, 1, 2, 3, 4])
    #expect(index.search("zo", limit: 2).tags == [id(0), id(1)])
    #expect(index.search("zo", limit: 2).total == 5)
  }

  @Test func everyWordMustBeMet() {
    let index = index([("Kari Moen", "Oslo"), ("Kari Berg", "Bergen"), ("Ola Moen", "Oslo")])
    #expect(numbers(index, "kari moen") == [0])
    #expect(numbers(index, "moen oslo").sorted() == [0, 2])
    #expect(numbers(index, "kari trondheim").isEmpty)
  }

  @Test func caseAndDiacriticsAreFolded() {
    let index = index([("Åse Øye", ""), ("Renée", "")])
    for query in ["åse", "ÅSE", "renee", "RENÉE"] {
      #expect(numbers(index, query).count == 1, "\(query)")
    }
  }

  /// An empty query matches all; one of signs alone matches none.
  @Test(arguments: [("", 2), ("   ", 2), ("-", 0), ("?!", 0), ("a-", 1), ("- ?", 0)])
  func aQueryWithoutLetters(_ query: String, _ total: Int) {
    let index = index([("Anna", ""), ("Bo", "")])
    #expect(index.search(query, limit: 50).total == total)
  }

  @Test func aNameComesBeforeThoseThatItBegins() {
    let index = index([("Annabel", ""), ("Anna Berg", ""), ("Anna", ""), ("Ann", "")])
    #expect(numbers(index, "").prefix(2) == [3, 2])
    index.put(id(7), name: "An", municipality: "")
    #expect(numbers(index, "").first == 7)
  }

  @Test func equalContactsComeInTheOrderOfTheirNamesThenOfTheirTags() {
    let index = index([("Berit", ""), ("Anna", ""), ("Anna", ""), ("Åse", "")])
    #expect(numbers(index, "") == [1, 2, 0, 3])
  }

  @Test func aMatchDoesNotSpanTwoContactsOrNameAndMunicipality() {
    let index = index([("Ab", "Cd"), ("Ef", "Gh")])
    for query in ["bcd", "bc", "de", "def", "fgh"] {
      #expect(numbers(index, query).isEmpty, "\(query)")
    }
  }

  @Test func aContactIsReplacedAndRemoved() {
    // Given
    let index = index([("Anna", "Oslo"), ("Bo", "Oslo")])
    // When
    index.put(id(0), name: "Cecilie", municipality: "Bergen")
    index.put(id(2), name: "Arne", municipality: "Oslo")
    // Then the old texts are gone and the order is kept
    #expect(numbers(index, "anna").isEmpty)
    #expect(numbers(index, "") == [2, 1, 0])
    // When, then
    index.remove(id(1))
    index.remove(id(77))
    #expect(numbers(index, "") == [2, 0])
  }

  @Test func puttingGivesTheSameOrderAsSorting() {
    // Given
    let names = (0..<60).map { "N\($0 * 37 % 60) x" }
    let sorted = index(names.map { ($0, "") })
    let put = ContactIndex(org: [1], version: 1)
    // When
    for (number, name) in names.enumerated() { put.put(id(number), name: name, municipality: "") }
    // Then
    #expect(numbers(put, "", limit: 100) == numbers(sorted, "", limit: 100))
  }

  @Test func moreWordsThanCanBeRankedAreIgnored() {
    let index = index([("Anna", "")])
    let query = [String](repeating: "anna", count: 32).joined(separator: " ")
    #expect(numbers(index, query) == [0])
    #expect(numbers(index, query + " nobody") == [0])
    #expect(numbers(index, "nobody " + query).isEmpty)
  }

  @Test func anIndexThatIsMostlyReplacedTextIsWasteful() {
    let index = index([("Anna", "")])
    let long = String(repeating: "a", count: 10_000)
    var changes = 0
    while !index.isWasteful, changes < 100 {
      index.put(id(0), name: long, municipality: "")
      changes += 1
    }
    // About 30 kB per change: sort key and folded name.
    #expect((3...10).contains(changes), "after \(changes) changes")
  }

  @Test func anIndexIsBuiltAnewWhenMostOfItsMemoryIsWasted() {
    // Given a name that takes more than 64 KB
    let index = ContactIndex(org: [1], version: 1)
    let name = String(repeating: "a", count: 70_000)
    index.put(id(1), name: name, municipality: "")
    // When it was replaced once, half is in use
    index.put(id(1), name: name, municipality: "")
    #expect(!index.isWasteful)
    index.put(id(1), name: name, municipality: "")
    #expect(index.isWasteful)
    #expect(index.search("a", limit: 5).total == 1)
  }
}
