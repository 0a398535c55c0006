import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { claudeSession } from "../../support/home.ts"

const DAY_MS = 86_400_000

/** So many days ago, and an hour, as an age is counted. */
export function daysAgo(days: number): string {
  return new Date(Date.now() - days * DAY_MS - 3_600_000).toISOString()
}

export const RACE = "11111111-1111-4111-8111-111111111111"

/** Four conversations in two projects whose folders exist. */
export function pickerHome(home: string): void {
  const [api, web] = ["api", "web"].map((name) => join(home, "code", name))
  for (const folder of [api!, web!]) mkdirSync(folder, { recursive: true })
  claudeSession(home, {
    id: RACE,
    cwd: api!,
    start: daysAgo(9),
    title: "Refresh token race",
    turns: [
      { user: "Two requests refresh the token at once and one of them is logged out. Why?" },
      { assistant: "The refresh token is rotated, so the second request presents a used one." },
      { tool: { name: "Bash", input: { command: "npm test" }, output: "FAIL src/auth.test.ts", error: true } },
      { assistant: "I put a mutex around the refresh, so that the second request waits for the first." },
    ],
  })
  claudeSession(home, {
    id: "22222222-2222-4222-8222-222222222222",
    cwd: web!,
    start: daysAgo(5),
    title: "日本語 titles 👩‍💻 in the sidebar",
    turns: [
      { user: "The sidebar flickers when the theme changes" },
      { assistant: "The theme class is set after the first paint." },
    ],
  })
  claudeSession(home, {
    id: "33333333-3333-4333-8333-333333333333",
    cwd: web!,
    start: daysAgo(3),
    title: "OAuth callback loops",
    turns: [{ user: "The callback redirects to itself" }, { assistant: "Its state parameter was dropped." }],
  })
  claudeSession(home, {
    id: "44444444-4444-4444-8444-444444444444",
    cwd: api!,
    start: daysAgo(2),
    title: "Invoices round half a cent",
    turns: [{ user: "An invoice of three thirds is a cent short" }, { assistant: "Amounts were floats." }],
  })
}
