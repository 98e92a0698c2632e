// For `tallystick.config.ts`.
export { defineConfig } from './drive/config.ts'
export type { ConfigContext, ConfigSource, TallystickConfig } from './drive/config.ts'

// The whole command line, for programs that hold it.
export { runCommandLine } from './program.ts'

// How the command shows a run and has its approvals decided, for programs that do the same.
export { runInteractively } from './drive/interactive-run.ts'
export type { InteractiveRunOptions } from './drive/interactive-run.ts'
export { createProcessContext } from './command/context.ts'
export type { CommandContext, CommandHost } from './command/context.ts'
export { CommandError, chooseExitCode, exitCodes } from './command/exit-code.ts'
export type { ExitCode } from './command/exit-code.ts'
