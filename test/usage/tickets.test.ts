import { expect, test } from "vitest"
import { ticketOfBranch, ticketOfSubject } from "../../src/usage/tickets.ts"

test("a branch's ticket is its key or its issue's number", () => {
  const tickets = {
    "ann/ent-109-text-output-flag": "ENT-109",
    "ent-95": "ENT-95",
    "feature/ABC2-7_login": "ABC2-7",
    "login-ABC-7": "ABC-7",
    "12-dark-mode": "#12",
    "ann/issue-12": "#12",
    "fix/gh-12-x": "#12",
    "fix-#12": "#12",
  }
  for (const [branch, ticket] of Object.entries(tickets))
    expect([branch, ticketOfBranch(branch)]).toEqual([branch, ticket])
})

test("other numbers in branches are no tickets", () => {
  for (const branch of [
    "main",
    "improve-explain-2",
    "fix-2",
    "release-1.2",
    "v-3",
    "20260205-gitleaks",
    "utf-8-names",
    "26/add-usage",
    "try-4",
    "go_modules/deps-8020cebb01",
  ])
    expect([branch, ticketOfBranch(branch)]).toEqual([branch, undefined])
})

test("a commit's ticket is a key in capitals, or the issue that it closes", () => {
  expect(ticketOfSubject("ENT-109: print text")).toBe("ENT-109")
  expect(ticketOfSubject("print text, fixes #12 (#14)")).toBe("#12")
  for (const subject of ["print text (#14)", "read UTF-8 and SHA-256", "improve-explain-2", "see #3"])
    expect([subject, ticketOfSubject(subject)]).toEqual([subject, undefined])
})
