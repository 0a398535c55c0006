import { ownerFrom } from "../settings.ts"
import { listShards, moveShard } from "../store/moving.ts"
import { asOwner } from "../store/owner.ts"
import { type Commands, say } from "./commands.ts"

export const shardCommands: Commands = {
  "shard list": async () => {
    for (const shard of await asOwner(ownerFrom(process.env), listShards)) say(JSON.stringify(shard))
  },
  "shard move": async ([shardName = "", node = ""]) => {
    const { from, stays } = await asOwner(ownerFrom(process.env), (query) => moveShard(query, shardName, node))
    say(
      stays
        ? `${shardName} stays on ${node}.`
        : `${node} will build ${shardName} and then take it over. Until then, ${from ?? "no node"} answers searches. \`dex-hub shard list\` shows when the move is done.`,
    )
  },
}
