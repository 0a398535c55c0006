import { ownerFrom } from "../settings.ts"
import { listShards, moveShard } from "../store/moving.ts"
import { asOwner } from "../store/owner.ts"
import { type Commands, say } from "./commands.ts"

export const shardCommands: Commands = {
  "shard list": async () => {
    for (const shard of await asOwner(ownerFrom(process.env), listShards)) say(JSON.stringify(shard))
  },
  "shard move": async ([named = "", node = ""]) => {
    const { from, stays } = await asOwner(ownerFrom(process.env), (query) => moveShard(query, named, node))
    say(
      stays
        ? `${named} stays on ${node}.`
        : `${node} builds ${named} and then takes it over; until then ${from ?? "no node"} answers. \`dex-hub shard list\` shows when that is done.`,
    )
  },
}
