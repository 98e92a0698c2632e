import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

interface Remembered {
  /** For each source file the test files that noticed faults in it, and how many. */
  readonly noticed: Record<string, Record<string, number>>
  /** How long each test file takes. */
  readonly milliseconds: Record<string, number>
}

/** What earlier runs on this machine have shown about tests. It only decides which test runs first. */
export class Memory {
  readonly #file: string
  readonly #remembered: Remembered

  constructor(root: string) {
    this.#file = join(root, 'node_modules', '.cache', 'tallystick-mutants.json')
    this.#remembered = remembered(this.#file)
  }

  noticed(path: string, test: string): number {
    return this.#remembered.noticed[path]?.[test] ?? 0
  }

  /** Returns 0 for a test file that has not run. */
  milliseconds(test: string): number {
    return this.#remembered.milliseconds[test] ?? 0
  }

  addNoticed(path: string, test: string): void {
    const counts = (this.#remembered.noticed[path] ??= {})
    counts[test] = (counts[test] ?? 0) + 1
  }

  addMilliseconds(test: string, milliseconds: number): void {
    this.#remembered.milliseconds[test] = Math.round(milliseconds)
  }

  save(): void {
    mkdirSync(dirname(this.#file), { recursive: true })
    writeFileSync(this.#file, JSON.stringify(this.#remembered))
  }
}

function remembered(file: string): Remembered {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Remembered
  } catch {
    return { noticed: {}, milliseconds: {} }
  }
}
