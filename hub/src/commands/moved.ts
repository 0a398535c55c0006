import { SettingsProblem } from "../settings.ts"
import type { Commands } from "./commands.ts"

/** Commands of earlier versions, and what does the same now. */
const MOVED = {
  "tenant add": "tenant add NAME",
  "tenant quota": "tenant quota NAME SIZE",
  "tenant search": "tenant search NAME opensearch|files",
  "tenant rule": "rule add 'github.com/acme/*'` or `dex hub admin rule remove",
  "tenant rules": "rule list",
  "tenant oidc": "tenant login NAME --domain example.com` or `dex hub admin tenant no-login NAME",
  "member add": "member add NAME",
  "member quota": "member quota NAME SIZE",
  "member disable": "member disable NAME",
  invite: "member add NAME` or `dex hub admin member invite NAME",
  "token add": "member invite NAME` or, for CI, `dex hub admin service add NAME PROJECT",
  "token list": "token list",
  "token revoke": "token revoke ID",
  grant: "grant NAME PROJECT --level read",
  "project owner": "project owner PROJECT NAME",
  "project keep": "project keep PROJECT DAYS",
  "group grant": "group grant GROUP PROJECT --level read",
  "group revoke": "group revoke GROUP PROJECT",
  "group role": "group role GROUP auditor",
  "group list": "group list",
  audit: "audit",
}

/** Commands of earlier versions for what `dex-hub serve` does now. */
const JOBS = {
  expire: "It deletes what projects no longer keep, and the remains of pushes that never finished, every hour.",
  "forget-keys": "It removes the keys of what was deleted from PostgreSQL's files, if DEX_HUB_KEYS_URL is set.",
}

/** Each says what to use instead. */
export const movedCommands: Commands = {
  ...Object.fromEntries(
    Object.entries(JOBS).map(([name, why]) => [
      name,
      async () => {
        throw new SettingsProblem(
          `\`dex-hub serve\` does this by itself. ${why} Remove \`dex-hub ${name}\` from your schedule.`,
        )
      },
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(MOVED).map(([name, now]) => [
      name,
      async () => {
        throw new SettingsProblem(
          `\`dex-hub ${name}\` has moved to dex: \`dex hub admin ${now}\`. It works from any machine, over HTTP. docs/hub.md says how to log in.`,
        )
      },
    ]),
  ),
}
