import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { parseObject, record, records, string } from "../src/core/record.ts"
import { formatRef } from "../src/core/ref.ts"
import { versionsOfFile } from "../src/git/file-versions.ts"
import { completeText } from "../src/learn/recover/file-state.ts"
import { recoverState } from "../src/learn/recover/replay.ts"
import { doubtsAfter, sightingsIn } from "../src/learn/recover/sightings.ts"
import { openStore } from "../src/store/history/sqlite-history.ts"
import { genuineProject } from "./answers/project.ts"
import { openGenuineHome } from "./genuine-home.ts"
import { Absent } from "./set.ts"
import { genuineCorpus } from "./sets/corpus.ts"

// Is a recovered file exactly what it was? Claude Code's transcripts contain a copy of each file before each edit, which dex does
// not store. A state counts if git confirms it: the repository has exactly these bytes.
//   npm run eval:recover -- [--every] [--uncommitted] [--show RESULT] [--home FOLDER --clone FOLDER --claude FOLDER]
// One state counts for each file of each conversation, the last one that git has; with --every, all of them. With --uncommitted, the
// repository has only the commits that were made before the state.

const { values } = parseArgs({
  options: {
    every: { type: "boolean" },
    uncommitted: { type: "boolean" },
    show: { type: "string" },
    home: { type: "string" },
    clone: { type: "string" },
    claude: { type: "string" },
  },
})

type Confirmed = { session: string; path: string; call: string; text: string }

try {
  const clone = values.clone ?? genuineProject().clone
  const store = values.home === undefined ? (await openGenuineHome()).store : openStore(join(values.home, "history.db"))
  const confirmed = confirmedStates(values.claude ?? genuineCorpus(), clone)
  const counts: Record<string, number> = { confirmed: 0, not_stored: 0 }
  for (const [session, states] of Map.groupBy(confirmed, (one) => one.session)) {
    const [row] = await store.resolve({ source: "claude_code", prefix: session })
    if (!row) {
      counts.not_stored! += states.length
      continue
    }
    const messages = await store.messages(row.ref)
    for (const { path, call, text } of states) {
      const last = messages.findIndex(({ parts }) =>
        parts.some((part) => part.type === "tool_result" && part.call_id === call),
      )
      const until = messages.slice(0, last + 1)
      const seen = sightingsIn(until, (one) => one === path)
      const versions = await versionsOfFile(clone, below(path))
      const end = seen.at(-1)?.at ?? 0
      const known = values.uncommitted ? versions.filter(({ at }) => at < end) : versions
      const { state, confirmedBy, base, possible } = recoverState(seen, known)
      const found = possible > 1 ? undefined : completeText(state)
      const isComplete = confirmedBy !== undefined || doubtsAfter(until, seen, path).length === 0
      const outcome = found === undefined ? "lines missing" : found === text ? "exact" : "wrong"
      const result = `${isComplete && found !== undefined ? "complete" : "partial"}, ${outcome}${base ? ", with lines of a commit" : ""}`
      counts.confirmed!++
      counts[result] = (counts[result] ?? 0) + 1
      if (values.show !== undefined && result.includes(values.show))
        console.log(formatRef({ ...row.ref, number: messages[last]?.number ?? 0 }), path, possible, seen.length)
    }
  }
  console.log(JSON.stringify(counts, null, 2))
} catch (error) {
  if (!(error instanceof Absent)) throw error
  console.log(`NOT RUN: ${error.message}`)
}

function below(path: string): string {
  const at = Math.max(
    ...["/cmd/", "/docs/", "/scripts/", "/.github/", "/.claude/", "/e2e/"].map((part) => path.indexOf(part)),
  )
  return at === -1 ? path.slice(path.lastIndexOf("/") + 1) : path.slice(at + 1)
}

/** The states that edits left in the transcripts, as far as git has exactly these bytes. */
function confirmedStates(claude: string, clone: string): Confirmed[] {
  const states: (Confirmed & { hash: string })[] = []
  for (const folder of readdirSync(join(claude, "projects")))
    for (const name of readdirSync(join(claude, "projects", folder)).filter((name) => name.endsWith(".jsonl")))
      for (const line of readFileSync(join(claude, "projects", folder, name), "utf8").split("\n")) {
        const raw = line.includes('"originalFile"') ? parseObject(line) : undefined
        const result = record(raw?.toolUseResult)
        const path = string(result?.filePath)
        const text = result && textAfter(result)
        const call = records(record(raw?.message)?.content).map(({ tool_use_id }) => string(tool_use_id))[0]
        if (!raw || path === undefined || text === undefined || call === undefined) continue
        const bytes = Buffer.from(text)
        const hash = createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex")
        states.push({ session: name.replace(".jsonl", ""), path, call, text, hash })
      }
  const known = execFileSync("git", ["-C", clone, "cat-file", "--batch-check"], {
    input: states.map(({ hash }) => hash).join("\n"),
    maxBuffer: 1 << 28,
  })
  const lines = known.toString().split("\n")
  const confirmed = states.filter((_, i) => lines[i]!.includes(" blob "))
  if (values.every) return confirmed
  return [...new Map(confirmed.map((one) => [`${one.session} ${one.path}`, one])).values()]
}

function textAfter(result: Record<string, unknown>): string | undefined {
  const [original, old, replacement] = [result.originalFile, result.oldString, result.newString].map(string)
  if (string(result.content) !== undefined) return string(result.content)
  if (original === undefined || old === undefined || replacement === undefined || result.userModified === true)
    return undefined
  if (!original.includes(old)) return undefined
  return result.replaceAll === true
    ? original.replaceAll(old, () => replacement)
    : original.replace(old, () => replacement)
}
