import { openTerminal } from "../../../src/cli/picker/terminal-mode.ts"

// A program that takes over the screen and then crashes.

const terminal = openTerminal(process.stdin, process.stdout, (error) => {
  process.stdout.write(`reported: ${(error as Error).message}\n`)
  process.exit(2)
})
terminal.enter()
terminal.draw({ lines: ["drawn"], cursor: { row: 0, column: 0 } })
setImmediate(() => {
  throw new Error("it broke")
})
