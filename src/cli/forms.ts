import { parseArgs } from "node:util"
import { DexError } from "../core/error.ts"
import { flag } from "../core/schema.ts"
import type { Tool } from "../core/tool.ts"
import { type Flag, flagsOf, hasArgumentsOrHelp } from "./args.ts"
import type { Command } from "./command.ts"

// Some tools are forms of another command: `dex show 2 --lines`, `dex doctor gc`, and `dex subscribe` without words. Their own
// names (`dex scan`, `dex gc`, `dex traces`) work until 0.4, but help and completions do not list them.

type FormTool = Tool<never> & { cli: { formOf: NonNullable<Tool<never>["cli"]["formOf"]> } }

function isFormOf(tool: Tool<never>, name: string): tool is FormTool {
  return tool.cli.formOf?.command === name
}

/** True if the tool's own name is an old command name. */
export function hasOldName(tool: Pick<Tool<never>, "cli">): boolean {
  return tool.cli.formOf !== undefined
}

/** The note for a person who typed an old name. */
export function oldNameNote({ name, cli }: Tool<never>): string | undefined {
  return cli.formOf && `\`dex ${name}\` is now \`${cli.formOf.now}\`.`
}

/** The tool as a form of a command, with the form's name, example and pager. Returns a tool that is not a form unchanged. */
export function asForm<T extends Tool<never>>(tool: T): T {
  const { formOf, rest, ...cli } = tool.cli
  if (!formOf) return tool
  const { command, option, word, example } = formOf
  const name = option === undefined ? `${command} ${word}` : `${command} --${option}`
  // If the option that chooses the form sets the same field as the further words, only the option sets it.
  const restOption = rest === undefined || rest === option ? {} : { rest }
  return { ...tool, name, cli: { ...cli, ...restOption, example, paged: formOf.paged } }
}

/** The forms of a command as they are typed, each with a summary. The last row says how to see the options of a form. */
export function formsOf(name: string, commands: readonly Command[]): [typed: string, summary: string][] {
  const forms = commands.map(({ tool }) => tool).filter((tool) => isFormOf(tool, name))
  const [first] = forms
  if (!first) return []
  return [
    ...forms.map((tool): [string, string] => [tool.cli.formOf.now, tool.summary]),
    [`dex ${asForm(first).name} --help`, "Show the options of a form"],
  ]
}

/** The form that these words choose, with the remaining words for it. Undefined if they choose none. */
export function chosenForm(
  name: string,
  words: string[],
  commands: readonly Command[],
): { command: Command; words: string[] } | undefined {
  const forms = commands.filter(({ tool }) => isFormOf(tool, name))
  if (forms.length === 0) return undefined
  return formByWord(forms, words) ?? formByOption(name, forms, words) ?? formWithoutArguments(forms, words)
}

function formByWord(forms: readonly Command[], words: string[]) {
  const index = words.findIndex((word) => !word.startsWith("-"))
  const form = forms.find(({ tool }) => index >= 0 && tool.cli.formOf!.word === words[index])
  return form && { command: commandAsForm(form), words: words.toSpliced(index, 1) }
}

/**
 * Finds the form by the first typed option that chooses one. An option that takes a value may be typed without one:
 * `dex show 2 --messages` reads the message that row 2 names.
 */
function formByOption(name: string, forms: readonly Command[], words: string[]) {
  const options = Object.fromEntries(
    forms.flatMap(({ tool }) => {
      const { option } = tool.cli.formOf!
      if (option === undefined) return []
      const field = tool.input.properties?.[option]
      return [[option, { type: field && field.type !== "boolean" ? ("string" as const) : ("boolean" as const) }]]
    }),
  )
  const { tokens } = parseArgs({ args: words, options, strict: false, allowPositionals: true, tokens: true })
  const typedOption = tokens.find((token) => token.kind === "option" && Object.hasOwn(options, token.name))
  if (typedOption?.kind !== "option") return undefined
  const form = forms.find(({ tool }) => tool.cli.formOf!.option === typedOption.name)!
  const isSwitch = options[typedOption.name]!.type === "boolean"
  if (typedOption.value !== undefined && isSwitch)
    throw new DexError("usage", `--${typedOption.name} takes no value. See: dex ${name} --${typedOption.name} --help`)
  const isFieldOfForm = form.tool.input.properties?.[typedOption.name] !== undefined
  const hasValue = typedOption.value !== undefined && (typedOption.inlineValue || !typedOption.value.startsWith("-"))
  return {
    command: commandAsForm(form),
    words: isFieldOfForm && (isSwitch || hasValue) ? words : words.toSpliced(typedOption.index, 1),
  }
}

/** The form that a command takes if only options are typed. */
function formWithoutArguments(forms: readonly Command[], words: string[]) {
  const form = forms.find(({ tool }) => tool.cli.formOf!.alone)
  return form && !hasArgumentsOrHelp(form.tool, words) ? { command: commandAsForm(form), words } : undefined
}

function commandAsForm({ tool, face }: Command): Command {
  return { tool: asForm(tool), face }
}

/** The flags of a command and of its forms, with the options that choose the forms. A name occurs only once. */
export function flagsWithForms(tool: Tool<never>, tools: readonly Tool<never>[]): Flag[] {
  const forms = tools.filter((other) => isFormOf(other, tool.name))
  const flags = [
    ...flagsOf(tool),
    ...forms.flatMap((form) => {
      const { option } = form.cli.formOf
      const choosingFlags =
        option === undefined ? [] : [{ name: option, path: [], schema: flag(form.summary), shorts: [] }]
      return [...flagsOf(asForm(form)), ...choosingFlags]
    }),
  ]
  return flags.filter((a, i) => flags.findIndex((b) => b.name === a.name) === i)
}

/** The words that choose a form of a command. */
export function formWords(name: string, tools: readonly Tool<never>[]): string[] {
  return tools.filter((tool) => isFormOf(tool, name)).flatMap(({ cli }) => cli.formOf!.word ?? [])
}
