import { parseArgs } from "node:util"
import { DexError } from "../core/error.ts"
import { flag } from "../core/schema.ts"
import type { Tool } from "../core/tool.ts"
import { type Flag, flagsOf } from "./args.ts"
import type { Command } from "./command.ts"

type FormTool = Tool<never> & { cli: { formOf: NonNullable<Tool<never>["cli"]["formOf"]> } }

function isFormOf(tool: Tool<never>, name: string): tool is FormTool {
  return tool.cli.formOf?.command === name
}

/** The tool as a form of its command (`show --lines`), with the form's name and example, and paged. */
export function asForm<T extends Tool<never>>(tool: T): T {
  const { formOf, rest: _, ...cli } = tool.cli
  if (!formOf) return tool
  const { command, option, example } = formOf
  return { ...tool, name: `${command} --${option}`, cli: { ...cli, example, paged: true } }
}

/**
 * The form that one of these words selects, with the remaining words. Undefined if none does. An option that takes a value may be
 * typed without one: `dex show 2 --messages` reads the message that row 2 names.
 */
export function chosenForm(
  name: string,
  words: string[],
  commands: readonly Command[],
): { command: Command; words: string[] } | undefined {
  const forms = commands.filter(({ tool }) => isFormOf(tool, name))
  if (forms.length === 0) return undefined
  const options = Object.fromEntries(
    forms.map(({ tool }) => {
      const { option } = tool.cli.formOf!
      return [option, { type: tool.input.properties?.[option] ? ("string" as const) : ("boolean" as const) }]
    }),
  )
  const { tokens } = parseArgs({ args: words, options, strict: false, allowPositionals: true, tokens: true })
  const typed = tokens.find((token) => token.kind === "option" && Object.hasOwn(options, token.name))
  if (typed?.kind !== "option") return undefined
  const { tool, face } = forms.find((form) => form.tool.cli.formOf!.option === typed.name)!
  if (typed.value !== undefined && options[typed.name]!.type === "boolean")
    throw new DexError("usage", `--${typed.name} takes no value. See: dex ${name} --${typed.name} --help`)
  const hasValue = typed.value !== undefined && (typed.inlineValue || !typed.value.startsWith("-"))
  return { command: { tool: asForm(tool), face }, words: hasValue ? words : words.toSpliced(typed.index, 1) }
}

/** A command's flags and those of its forms. */
export function flagsWithForms(tool: Tool<never>, tools: readonly Tool<never>[]): Flag[] {
  const forms = tools.filter((one) => isFormOf(one, tool.name))
  const flags = [
    ...flagsOf(tool),
    ...forms.flatMap((form) => [
      ...flagsOf(asForm(form)),
      { name: form.cli.formOf.option, path: [], schema: flag(form.summary), shorts: [] },
    ]),
  ]
  return flags.filter((one, i) => flags.findIndex(({ name }) => name === one.name) === i)
}
