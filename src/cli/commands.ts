import { ask } from "../answers/ask.ts"
import { chat } from "../answers/chat.ts"
import { digest } from "../answers/digest.ts"
import { map, rules } from "../answers/map.ts"
import { why } from "../answers/why.ts"
import { backup, importHistory, restore } from "../tools/backup/backup.ts"
import { blame } from "../tools/blame/blame.ts"
import { config } from "../tools/config/config.ts"
import { decisions } from "../tools/decisions/decisions.ts"
import { docs } from "../tools/docs/docs.ts"
import { doctor, secrets } from "../tools/doctor/doctor.ts"
import { evaluate } from "../tools/eval/eval.ts"
import { fix } from "../tools/fix/fix.ts"
import { forget, makePrivate } from "../tools/forget/forget.ts"
import { gc } from "../tools/gc/gc.ts"
import { guide } from "../tools/guide/guide.ts"
import { handover } from "../tools/handover/handover.ts"
import { hub } from "../tools/hub/hub.ts"
import { mute } from "../tools/mute/mute.ts"
import { notes } from "../tools/note/note.ts"
import { project } from "../tools/project/project.ts"
import { recover } from "../tools/recover/recover.ts"
import { resume } from "../tools/resume/resume.ts"
import { share } from "../tools/share/share.ts"
import { sources } from "../tools/sources/sources.ts"
import { stats } from "../tools/stats/stats.ts"
import { subscribe, subscriptions, unsubscribe } from "../tools/subscriptions/subscriptions.ts"
import { suggest } from "../tools/suggest/suggest.ts"
import { feedback, report, suggestions } from "../tools/suggestions/suggestions.ts"
import { reindex } from "../tools/sync/sync.ts"
import { tests } from "../tools/tests/tests.ts"
import { trace } from "../tools/trace/trace.ts"
import { traces } from "../tools/traces/traces.ts"
import { usage } from "../tools/usage/usage.ts"
import { type Command, command, isUnconfirmed } from "./command.ts"
import { pushInBackground, quickCommands } from "./quick-commands.ts"
import { install, uninstall } from "./tools/install.ts"
import { keepsRunning, watch } from "./tools/watch.ts"

const loadKeeping = () => import("./print/keeping.ts")
const loadSuggestions = () => import("./print/suggestions.ts")
/** Asks on a terminal whether dex may use an agent to write the answer, unless no model is used (`dry_run`, `facts`). */
const askForConsent = async <I extends object>(input: I): Promise<I> => {
  const usesNoModel = ["dry_run", "facts", "quotes"].some((name) => (input as Record<string, unknown>)[name] === true)
  if (!usesNoModel) await (await import("./terminal/questions.ts")).askForAgentConsent(process.env)
  return input
}
/** The same. Also offers an installed agent once if there is no model, and asks what the answer is for. */
const beforeAsk = async <I extends { quotes?: boolean; use_case?: string }>(input: I): Promise<I> => {
  if (input.quotes) return input
  const { offerAgent, readUseCase } = await import("./terminal/questions.ts")
  await offerAgent(process.env)
  await askForConsent(input)
  const useCase = input.use_case ?? (await readUseCase(process.env))
  return useCase === undefined ? input : { ...input, use_case: useCase }
}
const ANSWERS_ARE_KEPT = { keptNote: "Everything answered so far is kept. " }

/** Every command that is a tool. Help shows the commands of a group in this order, but common commands first. */
export const commands: readonly Command[] = [
  ...quickCommands,
  command(resume, {
    confirm: async (output) =>
      output.copy?.done === false && (await import("./terminal/confirm.ts")).confirmCopy(output),
    view: async () => (await import("./print/resume.ts")).printResume,
  }),
  command(fix, { view: async () => (await import("./print/fix.ts")).printFix, needsAllHistory: true }),
  command(blame, { view: async () => (await import("./print/blame.ts")).printBlame, needsAllHistory: true }),
  command(recover, {
    confirm: async (output) =>
      output.exists !== undefined && (await import("./terminal/confirm.ts")).confirmReplacing(output.exists),
    view: async () => (await import("./print/recover.ts")).printRecover,
    needsAllHistory: true,
  }),
  command(suggest, { view: async () => (await import("./print/suggestions.ts")).printSuggest, needsAllHistory: true }),
  command(tests, { view: async () => (await import("./print/fix.ts")).printTests, needsAllHistory: true }),
  command(decisions, {
    view: async () => (await import("./print/decisions.ts")).printDecisions,
    needsAllHistory: true,
  }),
  command(notes, { view: async () => (await import("./print/note.ts")).printNote, needsAllHistory: true }),
  command(suggestions, { view: async () => (await loadSuggestions()).printSuggestions }),
  command(feedback, { view: async () => (await loadSuggestions()).printFeedback }),
  command(report, { view: async () => (await loadSuggestions()).printUseReport }),
  command(subscribe, { view: async () => (await loadSuggestions()).printSubscribed }),
  command(subscriptions, { view: async () => (await loadSuggestions()).printSubscriptions }),
  command(unsubscribe, { view: async () => (await loadSuggestions()).printUnsubscribed }),
  command(docs, {
    view: async () => (await import("./print/docs.ts")).printDocs,
    confirm: async (output) =>
      isUnconfirmed(output) && (await import("./terminal/confirm.ts")).confirmDocuments(output),
  }),
  command(traces, { view: async () => (await import("./print/trace.ts")).printTraces }),
  command(trace, { view: async () => (await import("./print/trace.ts")).printTrace }),
  command(stats, {
    view: async () => (await loadKeeping()).printStats,
  }),
  command(usage, {
    runInstead: async ({ line, before }, json) =>
      line && !json ? (await import("./usage-line.ts")).printUsageLine(process.env, before) : undefined,
    view: async () => (await import("./print/usage.ts")).printUsage,
    needsAllHistory: true,
  }),
  command(guide, { view: async () => (await import("./print/guide.ts")).printGuide }),
  command(sources, { view: async () => (await loadKeeping()).printSources, needsAllHistory: true }),
  command(secrets, { view: async () => (await loadKeeping()).printSecrets, needsAllHistory: true }),
  command(doctor, { view: async () => (await loadKeeping()).printDoctor }),
  command(forget, {
    view: async () => (await loadKeeping()).printForget,
    confirm: async (output) =>
      isUnconfirmed(output) && (await import("./terminal/confirm.ts")).confirmForgetting(output),
    background: pushInBackground,
  }),
  command(makePrivate, { view: async () => (await loadKeeping()).printPrivate }),
  command(project, { view: async () => (await import("./print/project.ts")).printProject }),
  command(mute, { view: async () => (await loadKeeping()).printMute }),
  command(reindex, { view: async () => (await loadKeeping()).printReindex }),
  command(gc, { view: async () => (await loadKeeping()).printGc }),
  command(backup, { view: async () => (await import("./print/backup.ts")).printBackup }),
  command(restore, { view: async () => (await import("./print/backup.ts")).printRestore }),
  command(share, { view: async () => (await import("./print/backup.ts")).printShare }),
  command(hub, {
    runInstead: async ({ words: [action, ...rest], ...flags }, json) =>
      action === "login" ? (await import("./hub-login.ts")).hubLogin(rest, flags, json) : undefined,
    confirm: async (output) => isUnconfirmed(output) && (await import("./terminal/confirm.ts")).confirmSharing(output),
    view: async () => (await import("./print/hub.ts")).printHub,
    onInterrupt: { keptNote: "Everything sent so far stays on the hub, and the next push continues. " },
  }),
  command(importHistory, { view: async () => (await import("./print/backup.ts")).printImport }),
  command(evaluate, {
    view: async () => (await import("./print/eval.ts")).printEval,
    // An evaluation must remove its temporary folder, even if a signal ends it.
    onInterrupt: { keptNote: "", signals: ["SIGTERM", "SIGHUP"] },
  }),
  command(config, {
    view: async () => (await import("./print/config.ts")).printConfig,
    confirm: async (output) =>
      isUnconfirmed(output) && (await import("./terminal/confirm.ts")).confirmLocalModel(output),
  }),
  command(why, {
    needsAllHistory: true,
    before: askForConsent,
    view: async () => (await import("./print/ask.ts")).printWhy,
  }),
  command(ask, {
    needsAllHistory: true,
    before: beforeAsk,
    view: async () => (await import("./print/ask.ts")).printAsk,
  }),
  command(chat, {
    needsAllHistory: true,
    runInstead: async (input, json) => (json ? undefined : (await import("./chat/chat.ts")).chatCommand(input)),
    view: async () => (await import("./print/ask.ts")).printAsk,
  }),
  command(map, {
    needsAllHistory: true,
    before: askForConsent,
    view: async () => (await import("./print/digest.ts")).printMap,
    onInterrupt: ANSWERS_ARE_KEPT,
  }),
  command(digest, {
    needsAllHistory: true,
    before: askForConsent,
    view: async () => (await import("./print/digest.ts")).printDigest,
    onInterrupt: ANSWERS_ARE_KEPT,
  }),
  command(rules, {
    needsAllHistory: true,
    before: askForConsent,
    view: async () => (await import("./print/digest.ts")).printMap,
    onInterrupt: ANSWERS_ARE_KEPT,
  }),
  command(install, {
    before: async (input) => (await import("./terminal/questions.ts")).chooseWiring(input),
    confirm: async (...args) => (await import("./terminal/confirm.ts")).confirmInstall(...args),
    after: async ({ agents }, dex) => {
      const result = await install.run(dex, { agents, check: true })
      return { ...result, agents: result.agents.filter(({ wired }) => wired) }
    },
    view: async () => (await import("./print/install.ts")).printInstall,
  }),
  command(uninstall, {
    confirm: async (...args) => (await import("./terminal/confirm.ts")).confirmUninstall(...args),
    view: async () => (await import("./print/install.ts")).printUninstall,
  }),
  command(handover, { view: async () => (await import("./print/resume.ts")).printHandover }),
  command(watch, {
    runInstead: async (input, json) =>
      keepsRunning(input) ? (await import("./watch-run.ts")).watchCommand(json) : undefined,
    confirm: async (output) => isUnconfirmed(output) && (await import("./terminal/confirm.ts")).confirmService(output),
    view: async () => (await import("./print/watch.ts")).printWatch,
  }),
]
