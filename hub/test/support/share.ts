import { conversation, textMessage, unit } from "../../../test/support/conversations.ts"
import type { Viewer } from "../../src/store/connection.ts"
import { headOf, newLaptop, pushOne, wireMessages } from "./laptop.ts"
import type { Team } from "./team.ts"

export const API = "git.test/acme/api"

/** Puts one conversation of this author on the hub, with user and agent taking turns. */
export async function share(
  team: Team,
  author: Viewer,
  id: string,
  texts: string[],
  { project = API, visibility = "project" as "private" | "project" | "org" } = {},
) {
  const laptop = newLaptop()
  const messages = texts.map((text, i) => textMessage(`${id}${i}`, text, { role: i % 2 ? "assistant" : "user" }))
  await laptop.writeUnit(unit(id, [conversation(id, messages, { title: { text: `About ${id}`, from: "person" } })]))
  const ref = { source: "claude_code", id }
  const head = headOf((await laptop.conversation(ref))!)
  await pushOne(team, author, { project, head, messages: await wireMessages(laptop, ref), visibility })
}
