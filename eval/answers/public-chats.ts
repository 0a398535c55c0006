// Conversations that people publish as Markdown in repositories, converted back into the format of their agents.

export type Turn = {
  by: "person" | "agent"
  text: string
  /** The agent's questions, with the answers. */
  asked?: { question: string; options: string[]; answer: string }[]
}

/** One file may contain many conversations; this returns the named one. */
export function turnsIn(markdown: string, conversation: string): Turn[] {
  return conversation.startsWith("aider chat") ? aiderTurns(markdown, conversation) : specstoryTurns(markdown)
}

/** `#### ` is typed input, `> ` is aider's own output, everything else is the model's. */
function aiderTurns(markdown: string, conversation: string): Turn[] {
  const [, own = ""] = markdown.split(`\n# ${conversation}\n`)
  const [chat] = own.split(/\n# aider chat started at /)
  const turns: Turn[] = []
  for (const line of chat!.split("\n")) {
    if (line.startsWith("> ")) continue
    const by = line.startsWith("#### ") ? "person" : "agent"
    const text = by === "person" ? line.slice(5).trimEnd() : line
    const last = turns.at(-1)
    if (last?.by === by) last.text += `\n${text}`
    else if (text.trim() !== "") turns.push({ by, text })
  }
  return turns
}

const SPEAKER = /^_\*\*(User|Agent)\b[^\n]*\*\*_$/
const TOOL = /<tool-use\b[\s\S]*?<\/tool-use>/g
const THOUGHT = /<think>[\s\S]*?<\/think>/g

function specstoryTurns(markdown: string): Turn[] {
  const turns: Turn[] = []
  let lines: string[] = []
  let by: Turn["by"] | undefined
  const end = () => {
    if (by) turns.push(turnOf(by, lines.join("\n")))
    lines = []
  }
  for (const line of markdown.split("\n")) {
    const [, speaker] = SPEAKER.exec(line) ?? []
    if (speaker === undefined) lines.push(line)
    else {
      end()
      by = speaker === "User" ? "person" : "agent"
    }
  }
  end()
  return turns.filter(({ text, asked }) => text !== "" || asked)
}

function turnOf(by: Turn["by"], text: string): Turn {
  const asked = [...text.matchAll(TOOL)].filter(([tool]) => tool.includes('data-tool-name="AskUserQuestion"'))
  const own = text
    .replace(TOOL, "")
    .replace(THOUGHT, "")
    .replace(/\n---\s*$/, "")
    .trim()
  const answered = asked.flatMap(([tool]) => questionsIn(tool))
  return { by, text: own, ...(answered.length > 0 && { asked: answered }) }
}

/** Questions with their options, and below all of them one `**Answer:** …`, which names an option of each in order. */
function questionsIn(tool: string): NonNullable<Turn["asked"]> {
  const [asked = "", answer = ""] = tool.replace(/<\/details>[\s\S]*$/, "").split("\n**Answer:** ")
  const questions = [...asked.matchAll(/^\*\*(.+?)\*\*\s*\n\s*\nOptions:\n((?:- .*\n?)*)/gm)].map(
    ([, question, options]) => ({
      question: question!,
      options: [...options!.matchAll(/^- \*\*(.+?)\*\*/gm)].map(([, option]) => option!),
    }),
  )
  const [only] = answer.split(/" selected preview:|"\. Read the answers carefully/)
  if (questions.length === 1) return [{ ...questions[0]!, answer: only!.trim() }]
  let from = 0
  return questions.flatMap((one) => {
    const chosen = one.options.find((option) => answer.indexOf(option, from) >= 0)
    if (chosen === undefined) return []
    from = answer.indexOf(chosen, from) + chosen.length
    return [{ ...one, answer: chosen }]
  })
}
