import Policy

/// The product of all axes of `Situation`. Its cells have mixed-radix numbers, in which the last axis
/// changes fastest.
public enum Product {
  /// One situation: its number, and one bit of its mask for the value on each axis.
  public struct Cell {
    public internal(set) var number = 0
    public internal(set) var situation: Situation
    public internal(set) var mask: UInt64
  }

  public static let count = Axis.all.reduce(1) { $0 * $1.values.count }

  /// Visits the cells 0, `step`, 2 · `step` and so on. Only what differs between two of them is set.
  public static func visit(step: Int = 1, _ body: (Cell) -> Void) {
    let axes = Axis.all
    let steps = digits(step)
    let slowest = steps.firstIndex { $0 != 0 } ?? 0
    var digits = digits(0)
    var cell = cell(0)
    while true {
      body(cell)
      cell.number += step
      if cell.number >= count { return }
      var carry = 0
      for index in axes.indices.reversed() {
        if index < slowest, carry == 0 { break }
        let size = axes[index].values.count
        let old = digits[index]
        let sum = old + steps[index] + carry
        carry = sum / size
        let new = sum % size
        if new == old { continue }
        digits[index] = new
        axes[index].set(&cell.situation, new)
        cell.mask ^= axes[index].bit(old) | axes[index].bit(new)
      }
    }
  }

  /// The cell with this number.
  public static func cell(_ number: Int) -> Cell {
    var cell = Cell(number: number, situation: .plain, mask: 0)
    for (axis, digit) in zip(Axis.all, digits(number)) {
      axis.set(&cell.situation, digit)
      cell.mask |= axis.bit(digit)
    }
    return cell
  }

  /// The number of the cell of a situation.
  public static func number(of situation: Situation) -> Int {
    Axis.all.reduce(0) { $0 * $1.values.count + $1.get(situation) }
  }

  private static func digits(_ number: Int) -> [Int] {
    var rest = number
    let digits = Axis.all.reversed().map { axis in
      defer { rest /= axis.values.count }
      return rest % axis.values.count
    }
    return digits.reversed()
  }
}
