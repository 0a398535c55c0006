import { existsSync, mkdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import Database from "better-sqlite3"
import { errorLines, errorText } from "../src/core/error-text.ts"
import { KNOWLEDGE_FILE } from "../src/core/formats.ts"
import { call, put, writer } from "../test/support/claude-code.ts"
import { generateCorpus, generator, makeVocabulary } from "./corpus.ts"
import { DEX, median, percentile, ROOT, type Row, time } from "./measure.ts"

const RUNS = 60
const CONVERSATIONS = 400
const PROJECTS = 10
const ERRORS_EACH = 3
const HARD_STOP_MS = 250

type Known = { project: string; command: string; lines: string }

/** `dex hook` after a failed command and before an edit, from a cold process. The history is used again where it is there. */
export function benchHook(folder: string, messages: number): Row[] {
  const home = join(folder, String(messages))
  const name = messages >= 1e6 ? `${messages / 1e6} M` : `${messages / 1000} k`
  const env = { HOME: home, DEX_PROACTIVE_MODE: "speak" }
  if (!existsSync(join(home, ".dex"))) {
    rmSync(home, { recursive: true, force: true })
    mkdirSync(home, { recursive: true })
    generateCorpus(join(home, ".claude"), { messages, seed: 11 })
    const { code, stderr } = time([DEX, "sync"], env)
    if (code !== 0) throw new Error(stderr)
  }
  putSolved(home)
  time([DEX, "sync"], env)
  // What is known is learned when it is first asked for.
  time([DEX, "fix", "anything"], env)
  const [knowledge, suggestions] = [join(home, `.dex/${KNOWLEDGE_FILE}`), join(home, ".dex/suggest.db")]
  const failures = failuresIn(knowledge)
  time([DEX, "mute", "--list"], env)
  const [mine, floor, silent] = [[] as number[], [] as number[], [] as number[]]
  let spoken = 0
  for (let i = 0; i < RUNS; i++) {
    const { project, command, error, match } = failures[i % failures.length]!
    const about = { session_id: `bench-${i}-${process.pid}`, cwd: project, tool_input: { command } }
    const stdin = JSON.stringify({ ...about, tool_name: "Bash", error })
    const run = time([DEX, "hook", "claude_code", "PostToolUseFailure"], env, stdin)
    mine.push(run.ms)
    if (run.stdout !== "") spoken++
    floor.push(time([join(ROOT, "bench/floor-hook.ts"), knowledge, suggestions, match, project], {}, stdin).ms)
    const edit = JSON.stringify({
      ...about,
      tool_name: "Edit",
      tool_input: { file_path: `${project}/no/such/file.ts` },
    })
    silent.push(time([DEX, "hook", "claude_code", "PreToolUse"], env, edit).ms)
  }
  const p95 = percentile(mine, 0.95)
  const ratio = p95 / percentile(floor, 0.95)
  return [
    {
      what: `\`dex hook\` after a failed command, cold process, ${name} (${failures.length} errors; spoke ${spoken} times of ${RUNS}), p95 (median)`,
      measured: `${p95.toFixed(0)} (${median(mine).toFixed(0)}) ms, ${ratio.toFixed(2)} ×`,
      floor: `${percentile(floor, 0.95).toFixed(0)} (${median(floor).toFixed(0)}) ms`,
      goal: "≤ 1.5 ×, < 200 ms",
      ok: ratio <= 1.5 && p95 < 200,
    },
    {
      what: `\`dex hook\` before an edit of a file without a past, cold process, ${name}, p95 (median); the longest of all`,
      measured: `${percentile(silent, 0.95).toFixed(0)} (${median(silent).toFixed(0)}) ms; ${Math.max(...mine, ...silent).toFixed(0)} ms`,
      floor: "",
      goal: `hard stop at ${HARD_STOP_MS} ms`,
      ok: undefined,
    },
  ]
}

/** Conversations in which commands failed, something was edited, and they ended well. */
function putSolved(home: string): void {
  const random = generator(21)
  const words = makeVocabulary(generator(12)).filter((word) => /^[a-z]{4,}$/.test(word))
  const word = () => words[Math.floor(40 + random() * 5000)]!
  for (let i = 0; i < CONVERSATIONS; i++) {
    const cwd = `/home/dev/solved-${i % PROJECTS}`
    const sessionId = `${String(i).padStart(8, "0")}-aaaa-4aaa-8aaa-aaaaaaaaaaaa`
    const session = writer({ sessionId, cwd }, `s${i}-`)
    session.prompt(`Make the ${word()} pass`)
    for (let j = 0; j < ERRORS_EACH; j++) {
      const [error, filePath] = [`TypeError: ${word()}.${word()} is not a function`, `${cwd}/src/${word()}.ts`]
      const ran = (id: string, output: string, is_error: boolean) => {
        session.answer(`m_${id}`, [call(id, "Bash", { command: "npm test" })])
        const toolUseResult = is_error ? `Error: ${output}` : { stdout: output, stderr: "", interrupted: false }
        session.result(id, output, { toolUseResult }, { is_error })
      }
      ran(`f${i}-${j}`, error, true)
      session.answer(`m_e${i}-${j}`, [
        call(`e${i}-${j}`, "Edit", { file_path: filePath, old_string: "a", new_string: "b" }),
      ])
      const structuredPatch = [
        { oldStart: 1, oldLines: 1, newStart: 1, newLines: 1, lines: [`-${word()}()`, `+${word()}()`] },
      ]
      session.result(`e${i}-${j}`, "Updated.", { toolUseResult: { filePath, structuredPatch } })
      ran(`p${i}-${j}`, "1 passed", false)
    }
    put(home, `.claude/projects/${cwd.replaceAll("/", "-")}/${sessionId}.jsonl`, session.records)
  }
}

/** Errors that were solved, as they were printed, and the words by which they are looked for. */
function failuresIn(path: string): (Known & { error: string; match: string })[] {
  const db = new Database(path, { readonly: true })
  const known = db
    .prepare(
      `select p.path as project, f.command, f.lines from fix f join project p on p.id = f.project_id
       where f.fixed_number is not null order by f.id limit 200`,
    )
    .all() as Known[]
  db.close()
  if (known.length === 0) throw new Error("The generated history holds no error that was solved.")
  return known.map((fix) => {
    const error = (JSON.parse(fix.lines) as string[]).join("\n")
    const texts = errorLines(error).slice(0, 10).map(errorText)
    const words = new Set(texts.flatMap(({ words, particulars }) => [...words, ...particulars]))
    return { ...fix, error, match: [...words].map((word) => `"${word.replaceAll('"', "")}"`).join(" OR ") }
  })
}
