import { join } from 'node:path'
import xterm from '@xterm/headless'
import { spawnAtTerminal } from './whole-output.ts'

const main = join(import.meta.dirname, '..', '..', 'src', 'main.ts')

/** The command in a pseudo-terminal, before a terminal that obeys what it is sent. */
export interface AtTerminal extends Disposable {
  /** Resolves with the content of the screen as soon as it holds this. */
  shows(part: string): Promise<string>
  /** Types keys. */
  type(keys: string): void
  /** Whether the terminal hides the first letter of this, where the screen shows it. */
  hides(part: string): boolean
  /** Resolves with the exit code. */
  readonly ended: Promise<number>
}

/** How the terminal is, and what is typed before the command has begun. */
interface Terminals {
  readonly rows?: number
  readonly ahead?: string
  /** The pager of the environment: none unless given. */
  readonly pager?: string
}

/** Runs the command in a pseudo-terminal of 80 columns, with these keys typed before it has begun. */
export function atTerminal(
  { rows = 24, ahead = '', pager = 'cat' }: Terminals,
  ...words: readonly string[]
): AtTerminal {
  const size = { cols: 80, rows }
  const terminal = new xterm.Terminal({ ...size, allowProposedApi: true, scrollback: 1000 })
  const { FORCE_COLOR: _color, npm_lifecycle_event: _script, ...env } = process.env
  const child = spawnAtTerminal(process.execPath, [main, ...words], {
    ...size,
    env: { ...env, PAGER: pager },
  })
  const lines = (): readonly string[] => {
    const { active } = terminal.buffer
    return Array.from(
      { length: active.length },
      (_, row) => active.getLine(row)?.translateToString(true) ?? '',
    )
  }
  let look = (): void => {}
  child.onData((data) => terminal.write(data, () => look()))
  terminal.onData((answer) => child.write(answer))
  // The terminal shows output in its own time: wait until all of it is there before the end is reported.
  const ended = new Promise<number>((resolve) =>
    child.onExit(({ exitCode }) => terminal.write('', () => resolve(exitCode))),
  )
  child.write(ahead)
  return {
    shows: (part) =>
      new Promise((resolve, reject) => {
        look = () => {
          const screen = lines().join('\n')
          if (screen.includes(part)) resolve(screen)
        }
        look()
        void ended.then(() => reject(new Error(`it ended without ${part}:\n${lines().join('\n')}`)))
      }),
    type: (keys) => child.write(keys),
    hides(part) {
      const row = lines().findLastIndex((line) => line.includes(part))
      const cell = terminal.buffer.active.getLine(row)?.getCell(lines()[row]?.indexOf(part) ?? 0)
      return cell === undefined || cell.isInvisible() !== 0
    },
    ended,
    [Symbol.dispose]() {
      child.kill()
      terminal.dispose()
    },
  }
}
