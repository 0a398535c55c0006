import { type BriefCall, callInput } from "./brief-work.ts"

/** An entry of the to-do list that an agent keeps for itself. */
export type Todo = { text: string; status: "done" | "active" | "open"; number: number }

/** The to-do list in its last state. If the agent kept lists with two tools, the list of the tool that it used last counts. */
export function todosOf(calls: BriefCall[]): Todo[] {
  let list: (Todo & { id?: string })[] = []
  const tasks = new Map<string, Todo>()
  let last: "written" | "tasks" = "written"
  for (const call of calls) {
    if (call.result?.is_error) continue
    const tool = plainName(call.tool)
    if (tool === "todowrite" || tool === "writetodos" || tool === "updateplan") {
      const items = listOf(call.input.todos ?? call.input.plan).flatMap((item) => todoOf(item, call.number))
      list = call.input.merge === true ? mergeTodos(list, items) : items
      last = "written"
    } else if (tool === "taskcreate") {
      const id = /#(\d+)/.exec(call.result?.text ?? "")?.[1] ?? String(tasks.size + 1)
      const text = stringOf(call.input.subject)
      if (text !== undefined) tasks.set(id, { text, status: "open", number: call.number })
      last = "tasks"
    } else if (tool === "taskupdate") {
      updateTask(tasks, call)
      last = "tasks"
    }
  }
  const items: Todo[] = last === "tasks" ? [...tasks.values()] : list
  return items.map(({ text, status, number }) => ({ text, status, number }))
}

function updateTask(tasks: Map<string, Todo>, { number, input }: BriefCall): void {
  const id = String(input.taskId ?? "")
  const task = tasks.get(id)
  if (!task) return
  if (input.status === "deleted") tasks.delete(id)
  else if (input.status !== undefined || input.subject !== undefined)
    tasks.set(id, {
      text: stringOf(input.subject) ?? task.text,
      status: input.status === undefined ? task.status : statusOf(input.status),
      number,
    })
}

function todoOf(item: unknown, number: number): (Todo & { id?: string })[] {
  const fields = recordOf(item)
  const text = [fields.content, fields.step, fields.description, fields.title]
    .map(stringOf)
    .find((value) => value !== undefined)
  if (text === undefined || fields.status === "cancelled") return []
  return [{ text, status: statusOf(fields.status), number, id: stringOf(fields.id) }]
}

function mergeTodos<T extends { id?: string }>(previous: T[], update: T[]): T[] {
  const updated = previous.map((item) => update.find(({ id }) => id !== undefined && id === item.id) ?? item)
  return [...updated, ...update.filter((item) => !updated.includes(item))]
}

function statusOf(status: unknown): Todo["status"] {
  if (status === "completed" || status === "done") return "done"
  return status === "in_progress" ? "active" : "open"
}

type Plan = { number: number; text: string }

/** Plans that the person approved. */
export function plansOf(calls: BriefCall[]): Plan[] {
  return calls.flatMap(({ tool, input, result }) => {
    if (!["exitplanmode", "planexit"].includes(plainName(tool)) || !result || result.is_error) return []
    if (!/\bapproved\b/i.test(result.text)) return []
    const approvedText = /^## Approved Plan[^\n]*\n([\s\S]+)/m.exec(result.text)?.[1]
    const text = stringOf(input.plan) ?? approvedText
    return text === undefined ? [] : [{ number: result.number, text }]
  })
}

type AnsweredQuestion = { number: number; question: string; answer: string }

/** The questions that an agent asked with a tool, and the person's answers. */
export function answersOf(calls: BriefCall[]): AnsweredQuestion[] {
  return calls.flatMap(({ tool, input, result }) => {
    if (!["askuserquestion", "question", "requestuserinput", "askuser"].includes(plainName(tool))) return []
    if (!result || result.is_error || result.text.trim() === "") return []
    const questions = listOf(input.questions ?? [input]).flatMap((item) => stringOf(recordOf(item).question) ?? [])
    if (questions.length === 0) return []
    const { number, text } = result
    const pairs = questions.flatMap((question, i) => {
      const answer = answerIn(text, question, questions[i + 1])
      return answer === undefined ? [] : [{ number, question, answer }]
    })
    return pairs.length > 0 ? pairs : [{ number, question: questions.join("\n"), answer: answerStrings(text) }]
  })
}

/** Finds the answer in `"question"="answer", "next"="…". You can now …`. Questions and answers may contain quotes. */
function answerIn(text: string, question: string, next: string | undefined): string | undefined {
  const head = `"${question}"="`
  const at = text.indexOf(head)
  if (at === -1) return undefined
  const from = at + head.length
  const ends = [next === undefined ? -1 : text.indexOf(`", "${next}"="`, from), text.lastIndexOf('". You can now')]
  const end = ends.find((i) => i >= from)
  return text.slice(from, end).replace(/"\.?$/, "")
}

/** All strings in `{"answers": {…}}`, at any depth. If there are none, the text as it is. */
function answerStrings(text: string): string {
  const answers = recordOf(callInput(text).answers)
  const strings = (value: unknown): string[] =>
    typeof value === "string"
      ? [value]
      : typeof value === "object" && value !== null
        ? Object.values(value).flatMap(strings)
        : []
  return strings(answers).join("\n") || text
}

/** The tool's name without case and separators: agents spell it TodoWrite, todowrite or todo_write. */
function plainName(tool: string): string {
  return tool.toLowerCase().replaceAll(/[^a-z]/g, "")
}

function recordOf(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {}
}

/** The maximum number of to-dos or questions of one call. */
const MAX_LISTED = 200

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value.slice(0, MAX_LISTED) : []
}

function stringOf(value: unknown): string | undefined {
  return typeof value === "string" && value.trim() !== "" ? value : undefined
}
