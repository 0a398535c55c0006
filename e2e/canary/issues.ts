import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { type AgentReport, type Difference, type Report, WORDS } from "./difference.ts"

// Opens or updates one issue for each agent with a difference: `node e2e/canary/issues.ts REPORT`, with what
// `npm run canary -- --json` printed. It runs with the right to write issues, so it imports no package and starts only gh, without
// a shell. It trusts nothing in the report, which was written by a job that ran the agents.

const LABEL = "canary"
const MAX_ISSUES = 30
const MAX_LINES = 50
const MAX_NAME = 120

if (process.argv[1] === import.meta.filename) main()

function main(): void {
  const { agents, date } = JSON.parse(readFileSync(process.argv[2] ?? "canary.json", "utf8")) as Report
  const issues = agents.filter(({ differences }) => differences.length > 0).map((one) => issueOf(one, date))
  if (issues.length === 0) return
  gh(["label", "create", LABEL, "--description", "An agent writes what dex does not read", "--force"])
  const list = gh(["issue", "list", "--label", LABEL, "--state", "open", "--limit", "100", "--json", "number,title"])
  const open = JSON.parse(list) as { number: number; title: string }[]
  for (const { title, body } of issues.slice(0, MAX_ISSUES)) {
    const existing = open.find((issue) => issue.title === title)
    if (existing) gh(["issue", "edit", String(existing.number), "--body-file", "-"], body)
    else gh(["issue", "create", "--title", title, "--label", LABEL, "--body-file", "-"], body)
  }
}

function gh(args: string[], input = ""): string {
  return execFileSync("gh", args, { input, encoding: "utf8", stdio: ["pipe", "pipe", "inherit"] })
}

/** The issue of an agent. Its title does not contain the version, so that a later report finds it. */
export function issueOf(
  { agent, title, version, differences }: AgentReport,
  date: string,
): { title: string; body: string } {
  const more = differences.length - MAX_LINES
  const body = [
    `${plain(title)} ${version === undefined ? "" : `${quoted(version)} `}was compared with what dex reads of it on ${plain(date)}:`,
    "",
    ...differences.slice(0, MAX_LINES).map(lineOf),
    ...(more > 0 ? [`- and ${more} more`] : []),
    "",
    `\`npm run canary -- ${plain(agent)}\` shows this again. Make dex read it, or add it with a reason to \`e2e/canary/explained.ts\`.`,
    "The next run replaces this text if there is still a difference. It closes no issue.",
  ]
  return { title: `Canary: ${plain(title)}`, body: `${body.join("\n")}\n` }
}

function lineOf({ what, name, count }: Difference): string {
  return `- ${WORDS[what] ?? "difference"}: ${quoted(name)}${Number(count) > 1 ? ` (${Number(count)})` : ""}`
}

/** A name as code. It contains no backtick, so nothing in it is Markdown, a mention or a link. */
function quoted(name: string): string {
  return `\`${plain(name) || "(empty)"}\``
}

/** Letters, digits and a few signs as they are; everything else, such as `@`, backticks and line ends, as its number. */
export function plain(name: string): string {
  const letters = [...String(name)]
  const cut = letters.length > MAX_NAME ? "..." : ""
  return letters.slice(0, MAX_NAME).map(escaped).join("") + cut
}

function escaped(letter: string): string {
  return /^[A-Za-z0-9 _./:-]$/.test(letter) ? letter : `(u${letter.codePointAt(0)!.toString(16)})`
}
