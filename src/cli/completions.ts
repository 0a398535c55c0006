import { basename } from "node:path"
import { agents } from "../agents/registry.ts"
import { createDex } from "../app/dex.ts"
import { VERSION } from "../app/version.ts"
import { LISTED_KINDS } from "../core/conversation.ts"
import { DexError } from "../core/error.ts"
import { formatRef } from "../core/ref.ts"
import type { Tool } from "../core/tool.ts"
import { safeLine } from "../render/terminal.ts"
import { projectsHiddenFrom } from "../search/scope.ts"
import type { Dex } from "../tools/context.ts"
import { type Flag, flagsOf, screenOptions } from "./args.ts"
import type { ListedCommand } from "./command.ts"
import { flagsWithForms, formWords, hasOldName } from "./forms.ts"

/** Commands that take conversations as arguments. */
const CONVERSATION_COMMANDS = ["show", "resume", "handover", "forget"]
/** Options whose values dex looks up while the person types. Their short forms are the same in every command. */
const OPTIONS: { name: string; words: string; kind: CompletionKind }[] = [
  { name: "project", words: "--project|-p", kind: "projects" },
  { name: "source", words: "--source|-s", kind: "agents" },
]

/**
 * Returns the completion script for a shell. Titles and names can contain any character, so the scripts never let the shell
 * evaluate a value or a description, and they quote each value that they insert.
 */
export function completionScript(
  shell: string | undefined,
  allTools: readonly Tool<never>[],
  allCommands: readonly ListedCommand[],
): string {
  const tools = allTools.filter((tool) => !hasOldName(tool))
  // Leaves out aliases such as -h, because words that begin with a dash are completed as options.
  const commands = allCommands.flatMap(({ name, aliases = [], summary }) =>
    [name, ...aliases].filter((word) => !word.startsWith("-")).map((word) => ({ word, summary })),
  )
  const words = ({ name, cli }: Tool<never>) => [name, ...(cli.aliases ?? [])]
  const flags = (tool: Tool<never>) => [
    ...formWords(tool.name, allTools),
    ...flagsWithForms(tool, allTools).map((flag) => `--${flag.name}`),
    ...screenOptions(tool).map(([name]) => `--${name}`),
    "--json",
    "--help",
  ]
  const namesConversations = ({ name }: Tool<never>) => CONVERSATION_COMMANDS.includes(name)
  switch (shell) {
    case "bash":
      return `__dex_values() {
  local value title
  while IFS=$'\\t' read -r value title; do
    case "$value" in "$word"*) printf -v value %q "$value"; COMPREPLY+=("$value");; esac
  done < <(dex completions --values "$1" "$word" 2>/dev/null)
  compopt -o nosort 2>/dev/null
}
_dex() {
  local word="\${COMP_WORDS[COMP_CWORD]}" last="\${COMP_WORDS[COMP_CWORD-1]}"
  if [ "$COMP_CWORD" -eq 1 ]; then COMPREPLY=($(compgen -W "${commands.map(({ word }) => word).join(" ")}" -- "$word")); return; fi
  case "$last" in
${OPTIONS.map(({ words, kind }) => `    ${words}) COMPREPLY=(); __dex_values ${kind}; return;;`).join("\n")}
    --format)
      case "\${COMP_WORDS[1]}" in
${tools.flatMap((tool) => formatsOf(tool).map((formats) => `        ${words(tool).join("|")}) COMPREPLY=($(compgen -W "${formats}" -- "$word"));;`)).join("\n")}
      esac
      return;;
  esac
  case "$word" in -*) ;; *)
    case "\${COMP_WORDS[1]}" in
      ${tools.filter(namesConversations).flatMap(words).join("|")}) COMPREPLY=(); __dex_values refs; return;;
    esac;;
  esac
  case "\${COMP_WORDS[1]}" in
${tools.map((tool) => `    ${words(tool).join("|")}) COMPREPLY=($(compgen -W "${flags(tool).join(" ")}" -- "$word"));;`).join("\n")}
    completions) COMPREPLY=($(compgen -W "bash zsh fish" -- "$word"));;
  esac
}
complete -o default -F _dex dex
`
    case "zsh":
      return `#compdef dex
_dex_values() {
  local -a values shown
  local value title
  while IFS=$'\\t' read -r value title; do
    values+=("$value")
    shown+=("$value  $title")
  done < <(dex completions --values "$1" "$PREFIX" 2>/dev/null)
  compadd -l -V dex -d shown -a values
}
_dex() {
  if (( CURRENT == 2 )); then
    local -a commands=(${commands.map(({ word, summary }) => quote(`${word}:${summary}`)).join(" ")})
    _describe command commands
    return
  fi
  case "\${words[CURRENT-1]}" in
${OPTIONS.map(({ words, kind }) => `    ${words}) _dex_values ${kind}; return;;`).join("\n")}
  esac
  case "$PREFIX" in -*) ;; *)
    case "\${words[2]}" in
      ${tools.filter(namesConversations).flatMap(words).join("|")}) _dex_values refs; return;;
    esac;;
  esac
  case "\${words[2]}" in
${tools.map((tool) => `    ${words(tool).join("|")}) compadd -- ${flags(tool).join(" ")};;`).join("\n")}
    completions) compadd bash zsh fish;;
  esac
}
compdef _dex dex
`
    case "fish":
      return `${[
        "complete -c dex -f",
        ...commands.map(
          ({ word, summary }) => `complete -c dex -n __fish_use_subcommand -a ${word} -d ${quote(summary)}`,
        ),
        ...tools.flatMap((tool) =>
          flagsWithForms(tool, allTools).map(
            (flag) =>
              `complete -c dex -n '__fish_seen_subcommand_from ${words(tool).join(" ")}' -l ${flag.name}${flag.schema.type === "boolean" ? "" : " -r"}${fishValues(flag)}`,
          ),
        ),
        ...tools.flatMap((tool) =>
          formWords(tool.name, allTools).map(
            (word) => `complete -c dex -n '__fish_seen_subcommand_from ${words(tool).join(" ")}' -a ${word}`,
          ),
        ),
        ...tools
          .filter(namesConversations)
          .map(
            (tool) =>
              `complete -c dex -n '__fish_seen_subcommand_from ${words(tool).join(" ")}'${fishDynamicValues("refs")}`,
          ),
        ...tools.flatMap((tool) =>
          screenOptions(tool).map(
            ([name]) => `complete -c dex -n '__fish_seen_subcommand_from ${words(tool).join(" ")}' -l ${name}`,
          ),
        ),
        `complete -c dex -n '__fish_seen_subcommand_from completions' -a 'bash zsh fish'`,
      ].join("\n")}\n`
    default:
      throw new DexError(
        "usage",
        "Which shell? Run: dex completions <shell>, where <shell> is bash, zsh or fish. For bash: dex completions bash >> ~/.bashrc",
      )
  }
}

/** The values of `--format` as one text, separated by spaces. An empty array if the command has no such option. */
function formatsOf(tool: Tool<never>): string[] {
  return flagsOf(tool).flatMap(({ name, schema }) => (name === "format" && schema.enum ? [schema.enum.join(" ")] : []))
}

function fishValues({ name, schema }: Flag): string {
  const option = OPTIONS.find((known) => known.name === name)
  if (option) return fishDynamicValues(option.kind)
  return schema.enum ? ` -a '${schema.enum.join(" ")}'` : ""
}

/** `-k` keeps the order in which dex lists the values. */
function fishDynamicValues(kind: CompletionKind): string {
  return ` -k -a '(dex completions --values ${kind} (commandline -ct) 2>/dev/null)'`
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

const MAX_CONVERSATIONS = 40
const DESCRIPTION_CHARS = 70
/**
 * Matches a value that can be offered. A script reads one value per line, up to a tab, so a value must not contain control
 * characters, and it must not look like an option. The scripts quote all other special characters.
 */
const OFFERABLE_VALUE = /^(?!-)[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+$/u

type CompletionKind = "refs" | "projects" | "agents"
type CompletionValue = { value: string; description: string }

/**
 * The values that a shell offers for the word being typed, as lines of `value<tab>description`. Does not sync first. Returns an
 * empty text on an error.
 */
export async function completeValues(kind: string | undefined, typedText = ""): Promise<string> {
  const values = VALUES_BY_KIND[kind as CompletionKind]
  if (!values) return ""
  const dex = createDex({ env: process.env, cwd: process.cwd(), version: VERSION })
  try {
    if (kind !== "agents" && !dex.hasHistory()) return ""
    const candidates = (await values(dex, typedText)).filter(({ value }) => OFFERABLE_VALUE.test(value))
    const uniqueValues = candidates.filter((a, i) => candidates.findIndex((b) => b.value === a.value) === i)
    return uniqueValues.map(({ value, description }) => `${value}\t${shortDescription(description)}\n`).join("")
  } catch {
    return "" // an error would appear in the middle of the line that the person is typing
  } finally {
    dex.close()
  }
}

const VALUES_BY_KIND: Record<CompletionKind, (dex: Dex, typed: string) => Promise<CompletionValue[]>> = {
  refs: async (dex, typed) => {
    const store = await dex.store()
    const { rows } = await store.list({
      kinds: LISTED_KINDS,
      inside: dex.project,
      limit: MAX_CONVERSATIONS,
      offset: 0,
    })
    return rows.map(({ ref, title }) => ({
      // The id alone is shorter, and bash would treat the text after a colon as a separate word.
      value: typed.includes(":") ? formatRef(ref) : ref.id,
      description: title?.text ?? "",
    }))
  },
  projects: async (dex) => {
    const projects = await (await dex.store()).projects()
    const hidden = new Set(projectsHiddenFrom(projects, dex.project))
    const visiblePaths = projects.map(({ path }) => path).filter((path) => !hidden.has(path))
    return visiblePaths.map((path) => ({ value: basename(path), description: path }))
  },
  agents: async (dex) =>
    [...agents, ...(await dex.outsideAgents()).agents].map(({ source, name }) => ({
      value: source,
      description: name,
    })),
}

function shortDescription(text: string): string {
  const line = safeLine(text)
  return line.length > DESCRIPTION_CHARS ? `${line.slice(0, DESCRIPTION_CHARS - 1).toWellFormed()}…` : line
}

/**
 * A key binding script: ^G opens the picker and inserts the chosen ref. Ids come from other programs' files, so each shell quotes
 * them.
 */
export function keyBindingScript(shell: string | undefined): string {
  const script = KEY_BINDING_SCRIPTS[shell ?? ""]
  if (script === undefined)
    throw new DexError(
      "usage",
      "Which shell? Run: dex completions <shell> --widget, where <shell> is bash, zsh or fish.",
    )
  return script
}

const KEY_BINDING_SCRIPTS: Record<string, string> = {
  bash: `__dex_pick() {
  local ref
  ref=$(dex pick </dev/tty) || return
  printf -v ref %q "$ref"
  [ -z "$READLINE_LINE" ] && ref="dex resume $ref"
  READLINE_LINE="\${READLINE_LINE:0:READLINE_POINT}$ref\${READLINE_LINE:READLINE_POINT}"
  READLINE_POINT=$((READLINE_POINT + \${#ref}))
}
bind -x '"\\C-g": __dex_pick'
`,
  zsh: `dex-pick() {
  local ref
  if ref=$(dex pick </dev/tty); then
    ref=\${(q)ref}
    [[ -z $BUFFER ]] && ref="dex resume $ref"
    LBUFFER+=$ref
  fi
  zle reset-prompt
}
zle -N dex-pick
bindkey '^G' dex-pick
`,
  fish: `function dex_pick
  if set -l ref (dex pick </dev/tty)
    set ref (string escape -- $ref)
    test -z (commandline | string collect); and set ref "dex resume $ref"
    commandline -i -- $ref
  end
  commandline -f repaint
end
bind \\cg dex_pick
`,
}
