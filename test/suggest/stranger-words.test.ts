import { expect, test } from "vitest"
import { printsRemoteText } from "../../src/learn/learn.ts"

test.each([
  "curl -s https://example.org",
  "cd api && curl -sL $URL | jq .",
  'bash -c "wget -qO- https://example.org"',
  "x=$(curl example.org)",
  "curl http://localhost:3000 https://example.org",
  "curl http://localhost.example.org/a",
  "curl http://localhost@example.org/a",
  "gh issue view 12 --comments",
  "gh api repos/a/b/pulls",
  "cd x; gh pr diff 3 | head",
  "npm view left-pad readme",
  "ssh host cat notes",
  "http GET example.org",
  "https example.org",
])("%s prints what somebody else wrote", (command) => {
  expect(printsRemoteText(command)).toBe(true)
})

test.each([
  "npm test",
  "curl -s http://localhost:3000/health",
  "curl 127.0.0.1:3000 http://127.0.0.1:3000/x",
  "wget http://[::1]:8080/",
  "gh pr create --fill",
  "gh pr checkout 12",
  "gh auth status",
  "git fetch",
  "cat src/http/server.ts",
  "go test ./ssh-agent/...",
  "npm run curl-test",
  "npm install",
])("%s prints nothing from elsewhere", (command) => {
  expect(printsRemoteText(command)).toBe(false)
})
