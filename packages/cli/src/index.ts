// What `tallystick.config.ts` exports.
export { defineConfig } from './config/config.ts'
export type { ConfigContext, ConfigSource, TallystickConfig } from './config/config.ts'

// The whole command line, for programs that hold it.
export { runCommandLine } from './program.ts'

// How the command shows a run and has its approvals decided, for programs that do the same.
export { interactiveRun } from './interactive/interactive-run.ts'
export type { InteractiveRunOptions } from './interactive/interactive-run.ts'
export { processContext } from './command/command-context.ts'
export type { CommandContext, CommandHost } from './command/command-context.ts'
export { CommandError, exitCodeOf, exitCodes } from './command/exit-code.ts'
export type { ExitCode } from './command/exit-code.ts'
