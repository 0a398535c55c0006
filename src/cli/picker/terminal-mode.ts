import type { ReadStream, WriteStream } from "node:tty"
import type { Frame } from "./screen.ts"

export type PickerTerminal = {
  /** Draws what has changed since the last frame. */
  draw(frame: Frame): void
  /** The next frame is drawn whole. */
  forget(): void
  /** Sends something that draws nothing. */
  send(sequence: string): void
  /** Takes the screen over, and gives it back as it was. Doing either twice does nothing. */
  enter(): void
  leave(): void
  /** Gives it back for good, and stops watching for the process's end. */
  close(): void
}

const ENTER = "\x1b[?1049h\x1b[?2004h\x1b[2J"
const LEAVE = "\x1b[?2026l\x1b[0m\x1b[?2004l\x1b[?25h\x1b[?1049l"
const ENDING = ["SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT"] as const

/**
 * The alternate screen in raw mode. However the process ends (a signal, an error that nobody caught), the terminal is left
 * as it was found; only kill -9 cannot be noticed. Such an error goes to `onError`, once the screen is given back.
 */
export function openTerminal(
  input: ReadStream,
  output: WriteStream,
  onError: (error: unknown) => void,
): PickerTerminal {
  let isIn = false
  let last: string[] = []
  const enter = () => {
    if (isIn) return
    isIn = true
    last = []
    input.setRawMode(true)
    output.write(ENTER)
  }
  const leave = () => {
    if (!isIn) return
    isIn = false
    output.write(LEAVE)
    input.setRawMode(false)
  }
  const onSignal = (signal: NodeJS.Signals) => {
    // Ctrl-C is the pager's while one is open.
    if (signal === "SIGINT" && !isIn) return
    leave()
    process.off(signal, onSignal)
    process.kill(process.pid, signal)
  }
  const onUncaught = (error: unknown) => {
    leave()
    onError(error)
  }
  for (const signal of ENDING) process.on(signal, onSignal)
  process.on("uncaughtException", onUncaught)
  process.on("exit", leave)
  return {
    enter,
    leave,
    draw: (frame) => {
      if (!isIn) return
      output.write(changesOf(last, frame))
      last = frame.lines
    },
    forget: () => {
      last = []
    },
    send: (sequence) => void output.write(sequence),
    close: () => {
      leave()
      for (const signal of ENDING) process.off(signal, onSignal)
      process.off("uncaughtException", onUncaught)
      process.off("exit", leave)
    },
  }
}

/** One update that a terminal shows at once: the lines that changed, and where the cursor stands. */
function changesOf(last: readonly string[], { lines, cursor }: Frame): string {
  const whole = last.length !== lines.length
  const changed = lines
    .map((line, i) => (whole || line !== last[i] ? `\x1b[${i + 1};1H\x1b[K${line}\x1b[0m` : ""))
    .join("")
  const clear = whole ? "\x1b[2J" : ""
  return `\x1b[?2026h\x1b[?25l${clear}${changed}\x1b[${cursor.row + 1};${cursor.column + 1}H\x1b[?25h\x1b[?2026l`
}
