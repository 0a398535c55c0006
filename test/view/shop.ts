import { mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { call, put, type Writer, writer } from "../support/claude-code.ts"
import { makeRepository, type Repository } from "../support/repository.ts"
import { syncHome, warmDex } from "../support/warm.ts"

export const QUOKKAS = "11111111-2222-4333-8444-555555555555"
export const WOMBATS = "22222222-2222-4333-8444-555555555555"
export const FIXED = "33333333-2222-4333-8444-555555555555"
export const SECRET = "44444444-2222-4333-8444-555555555555"
export const refTo = (id: string): string => `claude_code:${id}`

/** Code that a conversation wrote. It has several lines, because a single line can hardly be attributed. */
export const codeOf = (name: string, count = 12): string[] =>
  Array.from({ length: count }, (_, i) => `\tconst ${name}${i} = compute("${name}", ${i * 7}, options.${name}${i})`)

export const OWN = ["// <img src=x onerror=alert(1)> \u202edesrever", ...codeOf("mine", 3)]
export const LONG_LINES = 2_500

export type Shop = {
  folder: string
  other: string
  below: string
  commits: Record<"quokkas" | "wombats" | "own", string>
}

/** Records a written file like Claude Code. */
export function writes(transcript: Writer, id: string, filePath: string, lines: string[]): void {
  transcript.answer(`m_${id}`, [call(id, "Write", { file_path: filePath, content: lines.join("\n") })])
  transcript.result(id, "File created", {
    toolUseResult: {
      type: "create",
      filePath,
      structuredPatch: [
        { oldStart: 1, oldLines: 0, newStart: 1, newLines: lines.length, lines: lines.map((line) => `+${line}`) },
      ],
    },
  })
}

function runs(transcript: Writer, id: string, output: string, isError: boolean): void {
  transcript.answer(`m_${id}`, [call(id, "Bash", { command: "npm test" })])
  const result = isError ? `Error: ${output}` : { stdout: output, stderr: "", interrupted: false }
  transcript.result(id, output, { toolUseResult: result }, { is_error: isError })
}

function session(home: string, id: string, cwd: string, hour: number, say: (transcript: Writer) => void): void {
  const transcript = writer({ sessionId: id, cwd }, id.slice(0, 3))
  say(transcript)
  const moved = transcript.records.map((record) => ({
    ...record,
    timestamp: String(record.timestamp).replace("T10:", `T${String(hour).padStart(2, "0")}:`),
  }))
  put(home, `.claude/projects/${cwd.replaceAll(/[^a-zA-Z0-9]/g, "-")}/${id}.jsonl`, moved)
}

function write(folder: string, file: string, lines: string[]): void {
  mkdirSync(dirname(join(folder, file)), { recursive: true })
  writeFileSync(join(folder, file), `${lines.join("\n")}\n`)
}

function commit({ git, gitAt }: Repository, at: string, message: string): string {
  git("add", "-A")
  gitAt(`2026-01-${at}:00Z`, "commit", "-q", "-m", message)
  return git("rev-parse", "HEAD")
}

/**
 * A home with a shop, whose files two conversations and a person wrote, and in which an error was fixed and a decision reversed.
 * There is a private repository below it, and another one next to it. Everything is synced and learned.
 */
export async function fillShop(home: string): Promise<Shop> {
  const shop = makeRepository(join(home, "shop"))
  const { folder } = shop
  writeFileSync(join(folder, ".gitignore"), "below\nignored.env\n")
  write(folder, "src/gone.ts", codeOf("dodo"))
  write(
    folder,
    "long.ts",
    Array.from({ length: LONG_LINES }, (_, i) => `export const long${i + 1} = ${i}`),
  )
  commit(shop, "02T09:00", "start")
  session(home, QUOKKAS, folder, 10, (transcript) => {
    transcript.prompt("Add the quokka table <script>alert(2)</script>")
    writes(transcript, "e1", join(folder, "src/zoo.ts"), codeOf("quokka"))
    transcript.prompt("telemetry should be enabled by default for quokkas, see src/zoo.ts")
  })
  write(folder, "src/zoo.ts", codeOf("quokka"))
  const quokkas = commit(shop, "02T10:05", "zoo: quokkas <b>bold</b>")
  session(home, WOMBATS, folder, 12, (transcript) => {
    transcript.prompt("Now the wombats")
    writes(transcript, "e2", join(folder, "src/zoo.ts"), codeOf("wombat"))
    writes(transcript, "e4", join(folder, "ignored.env"), ["KEY=1"])
    transcript.prompt("we want telemetry disabled by default for quokkas")
  })
  write(folder, "src/zoo.ts", [...codeOf("quokka"), ...codeOf("wombat")])
  const wombats = commit(shop, "02T12:05", "zoo: wombats")
  session(home, FIXED, folder, 14, (transcript) => {
    transcript.prompt("Make the tests pass")
    runs(transcript, "f1", "TypeError: quokka.refresh is not a function <i>", true)
    const filePath = join(folder, "src/zoo.ts")
    transcript.answer("m_e3", [call("e3", "Edit", { file_path: filePath, old_string: "a", new_string: "b" })])
    const lines = ["-quokka.refresh()", "+quokka.run()<u>"]
    const structuredPatch = [{ oldStart: 1, oldLines: 1, newStart: 1, newLines: 1, lines }]
    transcript.result("e3", "The file was updated.", { toolUseResult: { filePath, structuredPatch } })
    runs(transcript, "p1", "12 passed", false)
  })
  write(folder, "src/zoo.ts", [...OWN, ...codeOf("quokka"), ...codeOf("wombat")])
  shop.git("rm", "-q", "src/gone.ts")
  const own = commit(shop, "20T12:00", "by hand")
  write(folder, "ignored.env", ["KEY=walrus"])
  const below = secret(home, join(folder, "below"))
  const other = makeRepository(join(home, "other"))
  write(other.folder, "secret.txt", ["walrus"])
  commit(other, "02T09:00", "other")
  symlinkSync(join(other.folder, "secret.txt"), join(folder, "link.txt"))
  symlinkSync(other.folder, join(folder, "linked"))
  await syncHome(home)
  await warmDex(home, ["private", below])
  await warmDex(home, ["decisions", "--all"])
  return { folder, other: other.folder, below, commits: { quokkas, wombats, own } }
}

/** A repository with a conversation, both about a walrus. */
function secret(home: string, folder: string): string {
  const below = makeRepository(folder)
  write(folder, "walrus.ts", codeOf("walrus"))
  commit(below, "02T09:00", "walrus: the start")
  session(home, SECRET, folder, 16, (transcript) => {
    transcript.prompt("we should always feed the walrus first, see walrus.ts")
    writes(transcript, "e9", join(folder, "walrus.ts"), codeOf("walrus"))
    runs(transcript, "f9", "TypeError: walrus.feed is not a function", true)
    const filePath = join(folder, "walrus.ts")
    transcript.answer("m_e8", [call("e8", "Edit", { file_path: filePath, old_string: "a", new_string: "b" })])
    const structuredPatch = [{ oldStart: 1, oldLines: 1, newStart: 1, newLines: 1, lines: ["-a", "+b"] }]
    transcript.result("e8", "The file was updated.", { toolUseResult: { filePath, structuredPatch } })
    runs(transcript, "p9", "12 passed", false)
  })
  return folder
}
