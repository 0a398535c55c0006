import { masterKeyFrom, ownerFrom } from "../settings.ts"
import { removeAbandoned, removeUnnamedChunks } from "../store/abandoned.ts"
import { openKeyring } from "../store/keyring.ts"
import { forgetExpired } from "../store/retention.ts"
import { type Commands, say } from "./commands.ts"

/** The command that deletes what projects no longer keep. */
export const keepingCommands: Commands = {
  expire: async () => {
    const [owner, keys] = [ownerFrom(process.env), openKeyring(masterKeyFrom(process.env))]
    const forgotten = await forgetExpired(owner, keys)
    say(`Deleted ${forgotten} ${forgotten === 1 ? "conversation" : "conversations"} that projects no longer keep.`)
    const abandoned = await removeAbandoned(owner)
    if (abandoned > 0)
      say(`Removed the remains of ${abandoned} ${abandoned === 1 ? "push" : "pushes"} that never finished.`)
    const chunks = await removeUnnamedChunks(owner, keys)
    if (chunks > 0) say(`Removed ${chunks} ${chunks === 1 ? "piece" : "pieces"} that no conversation uses any more.`)
  },
}
