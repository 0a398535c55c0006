import { asOwner } from "./owner.ts"

// A plan gives a conversation a row and a key before anything of it is there. Where no commit follows, both are left behind.

const DAYS = 7

const FOUND = `select id from hub.conversation where rev = 0 and received_at < $1::timestamptz - make_interval(days => $2)
  for update skip locked`

/** Removes what was planned a week ago and never committed. Who comes back is told to plan again. Says how many there were. */
export async function removeAbandoned(owner: string, now = new Date()): Promise<number> {
  return asOwner(owner, async (query) => {
    const ids = (await query<{ id: number }>(FOUND, [now, DAYS])).map(({ id }) => id)
    await query("delete from hub_key.conversation_key where conversation = any ($1)", [ids])
    await query("delete from hub.chunk where conversation = any ($1)", [ids])
    await query("delete from hub.conversation where id = any ($1)", [ids])
    return ids.length
  })
}
