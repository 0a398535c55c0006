import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { BENCH_DIR, type Chat, requirePath } from "../set.ts"

/** A bug report whose right fix was decided in one conversation, or decided in one and changed in a later one. */
export type BugReport = {
  task: string
  text: string
  /** The rule that a right fix follows, as the bench states it. */
  policy: string
  decidedIn: string
  changedBy?: string
}

/** A bug report whose right fix was decided in a commit of a repository, which a later commit broke. */
export type HistoryTask = {
  task: string
  text: string
  /** The subject of the deciding commit. */
  subject: string
  /** The program that makes the repository. */
  build: string
  /** The broken file. */
  module: string
}

type Turn = { role: "user" | "assistant"; text?: string; content?: string }
type Task = {
  task_id: string
  source: "conversation" | "conversation-amended" | "history"
  bug_report: string
  policy: string
  module: string
  decision_subject?: string
  conversations?: Turn[] | Turn[][]
}

/**
 * sde-bench: bug reports that depend on a decision nobody can guess, and the conversations of one project, most about other
 * things.
 */
export function sdeBench(): {
  chats: Chat[]
  reports: BugReport[]
  history: HistoryTask[]
  /** The repository before any task's commits, as a git bundle. */
  repository: string
} {
  const folder = requirePath(join(BENCH_DIR, "sde-bench"))
  const read = <T>(path: string) => JSON.parse(readFileSync(join(folder, path), "utf8")) as T
  const decoys = read<{ id: string; turns: Turn[] }[]>("gen/decoy_conversations.json")
  const chats = decoys.map(({ turns }, i) => chatOf(`decoy-${i}`, turns))
  const reports: BugReport[] = []
  const history: HistoryTask[] = []
  for (const name of readdirSync(folder).sort()) {
    if (!name.startsWith("boltons-") || !existsSync(join(folder, name, "build.py"))) continue
    const written = read<Task>(`${name}/tasks/main/task.json`)
    const { task_id: task, source, bug_report: text, policy, module, conversations = [] } = written
    if (source === "history")
      history.push({ task, text, module, subject: written.decision_subject!, build: join(folder, name, "build.py") })
    if (conversations.length === 0) continue
    const led = source === "conversation" ? [conversations as Turn[]] : (conversations as Turn[][])
    for (const [i, turns] of led.entries()) chats.push(chatOf(chatName(task, i), turns))
    const changedBy = led.length > 1 && { changedBy: chatName(task, 1) }
    reports.push({ task, text, policy, decidedIn: chatName(task, 0), ...changedBy })
  }
  return { chats, reports, history, repository: join(folder, "boltons.bundle") }
}

export function taskOf(chat: string): string | undefined {
  return /^(.*) conversation \d+$/.exec(chat)?.[1]
}

/** The same for a task and its twin, in which the rule of the one was decided and then changed. */
export function ruleOf(task: string): string {
  return task.replace(/(-amended)?-\d+$/, "")
}

function chatName(task: string, i: number): string {
  return `${task} conversation ${i + 1}`
}

function chatOf(id: string, turns: Turn[]): Chat {
  const docs = turns.map(({ role, text, content }, i) => ({ id: `${id}#${i + 1}`, role, text: text ?? content ?? "" }))
  return { id, project: "sde", docs }
}
