import Base
import TestSupport
import Testing

@testable import Supabase

@Suite struct ServerErrorTests {
  private func column(_ code: String, _ message: String, details: String? = nil) -> String? {
    ServerError.read(
      ["code": .string(code), "message": .string(message), "details": JSON(details), "hint": nil]
    ).column
  }

  @Test("All parts of an error are read: recorded from PostgREST 14.17")
  func parts() throws {
    let error = ServerError.read(
      try json(
        #"{"code":"22008","details":null,"hint":"Perhaps you need a different \"datestyle\" setting.","#
          + #""message":"date/time field value out of range: \"2026-13-45T00:00:00Z\""}"#))
    expect(error.code, equals: "22008")
    expect(error.details, equals: nil)
    expect(error.message?.hasPrefix("date/time"), equals: true)
    expect(error.column, equals: nil)
  }

  @Test(
    "The column, if the texts tell it",
    arguments: [
      (
        "23502",
        #"null value in column "minutes" of relation "activities" violates not-null constraint"#,
        "Failing row contains (1, null).", "minutes"
      ),
      (
        "23514",
        #"new row for relation "activities" violates check constraint "activities_minutes_check""#,
        nil, "minutes"
      ),
      (
        "23514",
        #"new row for relation "activities" violates check constraint "activities_contact_id_check2""#,
        nil, "contact_id"
      ),
      (
        "23503",
        #"insert or update on table "activities" violates foreign key constraint "activities_org_id_fkey""#,
        #"Key (org_id)=(ff7703ed-d71d-4878-adf0-e2c90947ad2f) is not present in table "organizations"."#,
        "org_id"
      ),
      (
        "23503", "…", #"Key (contact_id, org_id)=(a, b) is not present in table "contacts"."#,
        "contact_id"
      ),
      (
        "23503",
        #"insert or update on table "activities" violates foreign key constraint "activities_contact_id_fkey""#,
        #"Key is not present in table "contacts"."#, "contact_id"
      ),
      (
        "23505", #"duplicate key value violates unique constraint "uq_slug_key""#,
        "Key (slug)=(sc9e71a) already exists.", "slug"
      ),
      (
        "PGRST204", "Could not find the 'extra' column of 'activities' in the schema cache", nil,
        "extra"
      ),
      ("42703", #"column "nope" of relation "activities" does not exist"#, nil, "nope"),
      ("42703", "column activities.nope does not exist", nil, "nope"),
    ] as [(String, String, String?, String)])
  func columns(code: String, message: String, details: String?, expected: String) {
    expect(column(code, message, details: details), equals: expected)
  }

  @Test(
    "HST-4: the table is found in the texts; a name in no such form is none",
    arguments: [
      ("42501", "permission denied for table activities", "activities"),
      (
        "42501", "new row violates row-level security policy for table \"activities\"",
        "activities"
      ),
      ("42501", "permission denied for view totals", "totals"),
      ("42501", "permission denied for schema public", nil),
      ("42501", "permission denied for table \"kari-ann@example.org\"", nil),
      ("42P01", "relation \"public.activities\" does not exist", "activities"),
      ("42P01", "relation \"activities\" does not exist", "activities"),
      ("42P17", "infinite recursion detected in policy for relation \"members\"", "members"),
      ("PGRST205", "Could not find the table 'public.visits' in the schema cache", "visits"),
      (
        "PGRST200",
        "Could not find a relationship between 'memberships' and 'organizations' in the schema cache",
        "organizations"
      ),
      ("23505", "duplicate key in table \"x\"", nil),
    ] as [(String, String, String?)])
  func tables(code: String, message: String, expected: String?) {
    expect(ServerError.table(code, message), equals: expected)
  }

  @Test(
    "No column, if the texts do not tell it",
    arguments: [
      ("22P02", #"invalid input syntax for type integer: "1.5""#, nil),
      ("22003", #"value "99999999999" is out of range for type integer"#, nil),
      ("22P05", "unsupported Unicode escape sequence", #"\u0000 cannot be converted to text."#),
      ("22001", "value too long for type character varying(80)", nil),
      ("23505", #"duplicate key value violates unique constraint "activities_pkey""#, nil),
      ("42501", #"new row violates row-level security policy for table "activities""#, nil),
      ("23514", #"new row for relation "a" violates check constraint "positive_minutes""#, nil),
      ("23514", #"new row for relation "a" violates check constraint "a__check""#, nil),
      ("23514", #"new row for relation "a" violates check constraint "a_check""#, nil),
      ("23514", "", nil), ("23502", "null value in column", nil),
      ("23502", #"null value in column ""#, nil),
      ("23502", #"null value in column "Å" of relation"#, nil),
      ("23505", "…", "Key (lower(name))=(x) already exists… Key ("), ("P0001", "nope", "d"),
      ("42703", "column . does not exist", nil), ("23503", "", "Key ("),
    ] as [(String, String, String?)])
  func noColumns(code: String, message: String, details: String?) {
    let column = column(code, message, details: details)
    expect(column == nil || details?.contains("lower") == true && column == "lower")
  }

  @Test("Bodies of other forms are accepted", arguments: ["{}", "[]", "[[]]", #"{"message":[]}"#])
  func garbage(body: String) throws {
    expect(ServerError.read(try json(body)), equals: ServerError())
    expect(ServerError.read(nil), equals: ServerError())
    expect(ServerError.read(.null), equals: ServerError())
  }
}
