import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs"
import { join } from "node:path"
import { CACHE_DIR } from "../home.ts"
import { BENCH_DIR, type Chat, type Doc, type EvalSet, halfOf, type Question, requirePath } from "../set.ts"

/** Questions that no similarity of words can answer: shown separately. */
const APART = ["summarization", "instruction_following", "event_ordering"]

/** Twenty long chats with an assistant. A chat is one conversation and one project. */
export function beam(): EvalSet {
  const root = join(unpacked(), "beam/chats/100K")
  const chats: Chat[] = []
  const questions: Question[] = []
  for (const name of readdirSync(root)) {
    const project = `beam-${name}`
    const docs = messagesIn(JSON.parse(readFileSync(join(root, name, "chat.json"), "utf8")), project)
    const known = new Set(docs.map((doc) => doc.id))
    chats.push({ id: project, project, docs })
    const probing = JSON.parse(readFileSync(join(root, name, "probing_questions/probing_questions.json"), "utf8"))
    for (const [category, asked] of Object.entries(probing as Record<string, Record<string, unknown>[]>)) {
      for (const [i, question] of asked.entries()) {
        const gold = [...new Set(numbersIn(question.source_chat_ids).map((id) => `${project}/${id}`))]
        const there = gold.filter((id) => known.has(id))
        if (there.length === 0) continue
        const id = `${project}/${category}/${i}`
        questions.push({ id, text: String(question.question), category, half: halfOf(id), gold: there, project })
      }
    }
  }
  return { name: "beam", unit: "message", chats, questions, apart: APART }
}

function unpacked(): string {
  if (existsSync(join(BENCH_DIR, "beam/chats/100K"))) return BENCH_DIR
  const archive = requirePath(`${BENCH_DIR}/beam.tar.xz`)
  const target = join(CACHE_DIR, "beam-unpacked")
  if (existsSync(target)) return target
  const partial = `${target}.${process.pid}`
  mkdirSync(partial, { recursive: true })
  execFileSync("tar", ["xf", archive, "-C", partial])
  rmSync(target, { recursive: true, force: true })
  renameSync(partial, target)
  return target
}

function messagesIn(value: unknown, project: string): Doc[] {
  if (Array.isArray(value)) return value.flatMap((item) => messagesIn(item, project))
  if (typeof value !== "object" || value === null) return []
  const { role, content, id } = value as Record<string, unknown>
  if (role === undefined || content === undefined || id === undefined)
    return Object.values(value).flatMap((item) => messagesIn(item, project))
  // The makers of the set left their own instructions at the end of a message, after an arrow.
  const text = String(content).replace(/->->.*$/s, "")
  return [{ id: `${project}/${id}`, text, role: role === "assistant" ? "assistant" : "user" }]
}

function numbersIn(value: unknown): number[] {
  if (value === null || value === undefined) return []
  if (typeof value === "object") return Object.values(value).flatMap(numbersIn)
  return [Number(value)]
}
