import { readFileSync } from "node:fs"
import { join } from "node:path"
import { type FoundFix, findFixes } from "../../src/learn/fixes/like.ts"
import type { HistoryReader } from "../../src/store/history/store.ts"
import { findFix } from "../../src/suggest/finders/fix.ts"
import { inTime, momentsOf } from "./replay.ts"

// After each failed command: which fixes are offered, are they the right ones, and is the fix of an error that was solved before
// among them? Whether one is right was read by hand: names alone do not tell.

export type FixLabel = {
  conversation: string
  /** The message of the failed command. */
  number: number
  /** The conversation and the message that failed there. */
  offer: string
  here: boolean
  label: "right" | "wrong"
  why: string
  /** Read after the rules were made. */
  added_after?: boolean
}
/** An error that an earlier conversation of the same project solved. */
type Recurrence = { conversation: string; number: number; solved_in: string }
export type FixLabels = { offers: FixLabel[]; recurrences: Recurrence[] }

export function fixLabels(): FixLabels {
  return JSON.parse(readFileSync(new URL("./fix-labels.json", import.meta.url), "utf8")) as FixLabels
}

export type FixOffer = {
  conversation: string
  number: number
  offer: string
  here: boolean
  is_held: boolean
  /** The query and the answer, for people who read them by hand. */
  command: string
  error: string
  fix: { command: string; error: string; edit: string; likeness: number; summary: string }
}

export async function fixOffers(store: HistoryReader, dir: string): Promise<FixOffer[]> {
  const offers: FixOffer[] = []
  for await (const { one, knowledge, is_held } of inTime(store, join(dir, "fixes-knowledge.db")))
    for (const { moment, session, number } of momentsOf(one)) {
      const { command, error, project } = moment
      if (command === undefined || error === undefined) continue
      const query = { query: error, ran: command, inside: project }
      const put = (fix: FoundFix, here: boolean, summary: string) =>
        offers.push({
          conversation: one.row.ref.id,
          number,
          offer: `${fix.id}#${fix.failed_number}`,
          here,
          is_held,
          command,
          error,
          fix: { command: fix.command, error: fix.error, edit: fix.edit, likeness: fix.likeness, summary },
        })
      const { solved } = findFixes(knowledge, { ...query, here: true })
      for (const { key, summary } of findFix({ knowledge }, moment, session))
        put(solved.find((fix) => key === `fix:${fix.source}:${fix.id}#${fix.failed_number}`)!, true, summary)
      const [elsewhere] = findFixes(knowledge, query).solved.filter((fix) => fix.project !== project)
      if (elsewhere) put(elsewhere, false, "")
    }
  return offers
}

export function fixRows(offers: FixOffer[], { offers: labels, recurrences }: FixLabels) {
  const labelOf = new Map(labels.map((label) => [keyOf(label), label.label]))
  const rows = [false, true].flatMap((is_held) =>
    [true, false].map((here) => {
      const own = offers.filter((offer) => offer.is_held === is_held && offer.here === here)
      const told = own.map((offer) => labelOf.get(keyOf(offer)))
      return {
        half: is_held ? "later" : "earlier",
        where: here ? "here" : "elsewhere",
        offers: own.length,
        right: told.filter((label) => label === "right").length,
        wrong: told.filter((label) => label === "wrong").length,
        unread: told.filter((label) => label === undefined).length,
      }
    }),
  )
  const isOffered = ({ conversation, number, solved_in }: Recurrence) =>
    offers.some(
      (offer) =>
        offer.here &&
        offer.conversation === conversation &&
        offer.number === number &&
        (offer.offer === solved_in || labelOf.get(keyOf(offer)) === "right"),
    )
  return { rows, recurrences: { of: recurrences.length, offered: recurrences.filter(isOffered).length } }
}

export function keyOf({ conversation, number, offer, here }: Omit<FixLabel, "label" | "why">): string {
  return `${conversation}#${number} ${offer} ${here ? "here" : "elsewhere"}`
}

export function fixLines({ rows, recurrences }: ReturnType<typeof fixRows>): string[] {
  return [
    "fixes after a failed command, read by hand",
    "half     where      offers  right  wrong  unread",
    ...rows.map(
      ({ half, where, offers, right, wrong, unread }) =>
        `${half.padEnd(8)} ${where.padEnd(9)} ${String(offers).padStart(7)} ${String(right).padStart(6)} ${String(wrong).padStart(6)} ${String(unread).padStart(7)}`,
    ),
    `errors of the later half that the project had solved before: ${recurrences.of}, offered ${recurrences.offered}`,
  ]
}
