import { expect, test } from "vitest"
import { proseOf } from "../../src/core/prose.ts"

test.each([
  "Why did we choose an orphan branch for checkpoints?",
  "- Fixed: `dex show` no longer breaks words (see docs/reading.md), and says so.",
  "3. Run `mise run test:integration` and look at https://example.com/a/b?c=d",
  "**Push** to a fork — no risk to the real repo.",
  "Two sessions tried to use the same branch; the second one lost.",
  "令牌在两个请求中被同时刷新",
  "Der Schlüssel wird geprüft, bevor er benutzt wird.",
])("keeps what people write: %s", (line) => {
  expect(proseOf(line)).toBe(line)
})

test.each([
  '{"file_path":"/code/api/src/auth.ts","old_string":"a"}',
  '  "version": "latest",',
  "    11→ import { x } from 'y'",
  "cmd/entire/cli/strategy.go:76:31: invalid operation",
  "src/auth.ts-14- // the marker",
  "@@ -101,13 +105,25 @@ func main()",
  "func getActiveSessionStates() (map[string]*State, error) {",
  "const retries = 3;",
  "  x := newThing()",
  "// ListOrphaned returns what is orphaned",
  "    at Object.run (/code/api/src/auth.ts:12:5)",
  "--- PASS: TestIsEnabled (0.00s)",
  "2026-11-03T10:00:00Z error: the token was used",
  "[lint:go] return settings.Save(s)",
  "$ npm test",
  "<task-notification><status>done</status>",
  "max-same-issues: 0",
  "written\\nby a program\\tin one line",
  "|---|---|",
])("removes what machines write: %s", (line) => {
  expect(proseOf(line)).toBe("")
})

test("text in a fence is left out, and the text around it is kept", () => {
  const text = "Before it.\n```sh\nplain words in a script\n~~~\n```\nAfter it.\n~~~~\nwithout an end"
  expect(proseOf(text)).toBe("Before it.\nAfter it.")
})
