import { setTimeout as pause } from "node:timers/promises"
import { asOwner } from "../hub/src/store/owner.ts"
import { addMember, addToken, grantProject, tenantNamed } from "../hub/src/store/people.ts"
import { type HubClient, openHub } from "../src/hub-client/client.ts"
import { type Outgoing, pushOne } from "./hub-start.ts"

// Many people at once: some search while others push. Each request begins when it is due, even if the previous one has not ended,
// and its time counts from there, so that the time spent waiting for a slow hub is included.

/** `searches` and `pushes` are per second, for all people together. */
export type CrowdSize = { people: number; pushers: number; searches: number; pushes: number }
export const CROWD: CrowdSize = { people: 50, pushers: 20, searches: 10, pushes: 4 }
/** A busy minute of a team of ten. */
export const TEAM_OF_TEN: CrowdSize = { people: 10, pushers: 4, searches: 2, pushes: 1 }

export type CrowdTimes = { searches: number[]; pushes: number[]; errors: string[] }

/** Members who may read and push to all of these projects. */
export async function addCrowd(
  owner: string,
  address: string,
  { people: count }: CrowdSize,
  projects: Iterable<string>,
): Promise<HubClient[]> {
  const keys = [...projects]
  return asOwner(owner, async (query) => {
    const tenant = await tenantNamed(query, "bench")
    const people: HubClient[] = []
    for (let i = 0; i < count; i++) {
      const member = await addMember(query, { tenant, name: `person${i}of${count}`, role: "member" })
      for (const key of keys) await grantProject(query, { tenant, member, key, level: "write" })
      const scopes = ["push" as const, "read" as const]
      people.push(
        openHub({ address, token: await addToken(query, { tenant, member, kind: "personal", scopes, name: "bench" }) }),
      )
    }
    return people
  })
}

/** Simulates `seconds` of everybody's day. People push conversations that the hub already has, under new ids. */
export async function runCrowd(
  people: HubClient[],
  size: CrowdSize,
  { seconds, questions, ready }: { seconds: number; questions: string[]; ready: Outgoing[] },
): Promise<CrowdTimes> {
  const pushers = people.slice(0, size.pushers)
  for (const hub of pushers)
    for (const project of new Set(ready.map((one) => one.project))) await hub.consent(project, ["said"])
  const times: CrowdTimes = { searches: [], pushes: [], errors: [] }
  const under: Promise<void>[] = []
  const every = async (perSecond: number, into: number[], run: (i: number) => Promise<unknown>) => {
    const from = performance.now()
    for (let i = 0; i < seconds * perSecond; i++) {
      const due = from + (i * 1000) / perSecond
      await pause(Math.max(0, due - performance.now()))
      under.push(
        run(i).then(
          () => void into.push(performance.now() - due),
          (error: Error) => void times.errors.push(error.message),
        ),
      )
    }
  }
  await Promise.all([
    every(size.searches, times.searches, (i) =>
      people[i % people.length]!.ask("search", {
        query: questions[i % questions.length]!,
        by: "conversation",
        limit: 10,
      }),
    ),
    every(size.pushes, times.pushes, (i) => {
      const one = ready[i % ready.length]!
      return pushOne(pushers[i % pushers.length]!, {
        ...one,
        head: { ...one.head, id: `${one.head.id}-again${i}of${size.people}` },
      })
    }),
  ])
  await Promise.all(under)
  return times
}
