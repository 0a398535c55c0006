import { masterKeyFrom, ownerFrom, SettingsProblem } from "../settings.ts"
import { removeAbandoned } from "../store/abandoned.ts"
import { openKeyring } from "../store/keyring.ts"
import { asOwner } from "../store/owner.ts"
import { tenantNamed } from "../store/people.ts"
import { forgetExpired, setRetention } from "../store/retention.ts"
import { type Commands, say } from "./commands.ts"

/** How long things are kept. */
export const keepingCommands: Commands = {
  "project keep": async ([key = "", days = ""], { tenant = "" }) => {
    if (!/^[1-9][0-9]{0,4}$|^forever$/.test(days))
      throw new SettingsProblem("Say for how many days: dex-hub project keep KEY DAYS --tenant T, or `forever`.")
    const kept = days === "forever" ? undefined : Number(days)
    await asOwner(ownerFrom(process.env), async (query) =>
      setRetention(query, await tenantNamed(query, tenant), key, kept),
    )
    say(
      kept === undefined
        ? `${key} keeps everything.`
        : `${key} keeps a conversation for ${days} days after its end. \`dex-hub expire\` deletes what is older: run it every day.`,
    )
  },
  expire: async () => {
    const forgotten = await forgetExpired(ownerFrom(process.env), openKeyring(masterKeyFrom(process.env)))
    say(`Deleted ${forgotten} ${forgotten === 1 ? "conversation" : "conversations"} that projects no longer keep.`)
    const abandoned = await removeAbandoned(ownerFrom(process.env))
    if (abandoned > 0)
      say(`Removed what was left of ${abandoned} ${abandoned === 1 ? "push" : "pushes"} that never ended.`)
  },
}
