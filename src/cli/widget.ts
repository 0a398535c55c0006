import { DexError } from "../core/error.ts"

/**
 * A key binding for a shell: ^G opens the picker, and what was chosen stands on the line. Ids come from other programs'
 * files, so each shell quotes them.
 */
export function widget(shell: string | undefined): string {
  const script = SCRIPTS[shell ?? ""]
  if (script === undefined)
    throw new DexError("usage", "Which shell? dex completions bash --widget, or zsh, or fish instead of bash.")
  return script
}

const SCRIPTS: Record<string, string> = {
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
