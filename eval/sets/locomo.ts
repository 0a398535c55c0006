import { readFileSync } from "node:fs"
import { BENCH_DIR, type Chat, type EvalSet, halfOf, type Question, requirePath } from "../set.ts"

type Turn = { speaker: string; dia_id: string; text: string; blip_caption?: string }
type Sample = {
  sample_id: string
  conversation: Record<string, unknown>
  qa: { question: string; evidence?: string[]; category: number }[]
}

const CATEGORIES = ["", "1 multi-hop", "2 temporal", "3 open-domain", "4 single-hop", "5 adversarial"]

/** Ten long friendships. A session is a conversation, a turn is a message, and each friendship is a separate project. */
export function locomo(unit: "message" | "conversation"): EvalSet {
  const samples = JSON.parse(readFileSync(requirePath(`${BENCH_DIR}/locomo/locomo10.json`), "utf8")) as Sample[]
  const chats: Chat[] = []
  const questions: Question[] = []
  for (const { sample_id, conversation, qa } of samples) {
    const known = new Set<string>()
    for (const [name, turns] of Object.entries(conversation)) {
      if (!Array.isArray(turns)) continue
      const docs = (turns as Turn[]).map((turn) => {
        known.add(turn.dia_id)
        const image = turn.blip_caption ? ` (image: ${turn.blip_caption})` : ""
        const role = turn.speaker === conversation.speaker_a ? ("user" as const) : ("assistant" as const)
        return { id: `${sample_id}/${turn.dia_id}`, text: `${turn.speaker}: ${turn.text}${image}`, role }
      })
      chats.push({ id: `${sample_id}/D${name.split("_")[1]}`, project: sample_id, docs })
    }
    for (const [i, { question, evidence, category }] of qa.entries()) {
      const turns = (evidence ?? []).flatMap((text) => text.match(/D\d+:\d+/g) ?? []).filter((id) => known.has(id))
      const gold = [...new Set(turns.map((id) => (unit === "message" ? id : id.split(":")[0]!)))]
      if (gold.length === 0) continue
      questions.push({
        id: `${sample_id}/q${i}`,
        text: question,
        category: CATEGORIES[category]!,
        half: halfOf(`${sample_id}/q${i}`),
        gold: gold.map((id) => `${sample_id}/${id}`),
        project: sample_id,
      })
    }
  }
  const name = unit === "message" ? "locomo" : "locomo-session"
  return { name, unit, chats, questions, apart: ["5 adversarial"] }
}
