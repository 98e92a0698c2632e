import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type Node, parseSync, Visitor } from 'oxc-parser'

/** A function of a source file, by the place of its body. */
export interface FunctionBody {
  /** Which function of the file it is, from 0. */
  readonly index: number
  readonly start: number
  readonly end: number
  /** Whether the body is an expression, and not a block. */
  readonly isExpression: boolean
}

interface Recorded {
  /** The sources whose functions were called, each with the digest of its text. */
  readonly files: Readonly<Record<string, string>>
  /** The functions that were called while modules were loaded, as `PATH#INDEX`. */
  readonly atLoad: readonly string[]
  readonly tests: Readonly<Record<string, { readonly digest: string; readonly called: readonly string[] }>>
}

/** Which functions each test file of a package calls, as an earlier run has counted them. */
export class Survey {
  readonly #root: string
  readonly #files: Readonly<Record<string, string>>
  readonly #atLoad: ReadonlySet<string>
  readonly #tests: ReadonlyMap<string, { readonly digest: string; readonly called: ReadonlySet<string> }>

  constructor(root: string, { files, atLoad, tests }: Recorded) {
    this.#root = root
    this.#files = files
    this.#atLoad = new Set(atLoad)
    this.#tests = new Map(
      Object.entries(tests).map(([test, { digest, called }]) => [test, { digest, called: new Set(called) }]),
    )
  }

  /**
   * Whether a test file may notice a fault at this place of a source file: it calls the innermost function there. A place
   * outside of all functions and whatever has changed since the survey may be noticed by every test.
   */
  mayNotice(test: string, path: string, offset: number): boolean {
    const text = readFileSync(join(this.#root, path), 'utf8')
    const recorded = this.#tests.get(test)
    if (this.#files[path] !== digestOf(text) || recorded === undefined) return true
    if (recorded.digest !== digestOf(readFileSync(join(this.#root, test), 'utf8'))) return true
    const around = functionsIn(path, text).findLast(({ start, end }) => start <= offset && offset < end)
    if (around === undefined) return true
    const key = `${path}#${around.index}`
    return this.#atLoad.has(key) || recorded.called.has(key)
  }
}

/** The functions of a file that have a body, in the order in which they begin. */
export function functionsIn(path: string, text: string): readonly FunctionBody[] {
  const bodies: Node[] = []
  const add = ({ body }: { readonly body: Node | null }): void => void (body && bodies.push(body))
  new Visitor({
    FunctionDeclaration: add,
    FunctionExpression: add,
    ArrowFunctionExpression: add,
  }).visit(parseSync(path, text).program)
  return bodies
    .sort((a, b) => a.start - b.start)
    .map(({ start, end }, index) => ({ index, start, end, isExpression: text[start] !== '{' }))
}

export function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16)
}

function fileOf(root: string, name: string): string {
  return join(root, 'node_modules', '.cache', `tallystick-survey-${name}.json`)
}

/** Runs every test file of a package once and counts which functions each of them calls. Takes as long as the tests. */
export function takeSurvey(root: string, name: string): void {
  const file = fileOf(root, name)
  mkdirSync(dirname(file), { recursive: true })
  const { status } = spawnSync(
    process.execPath,
    [join(import.meta.dirname, 'trial/survey-process.ts'), name, file],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  )
  if (status !== 0) throw new Error(`The survey of ${name} ended with ${status}.`)
}

/** Returns the last survey of a package on this machine, or `undefined` if it was never surveyed. */
export function lastSurvey(root: string, name: string): Survey | undefined {
  try {
    return new Survey(root, JSON.parse(readFileSync(fileOf(root, name), 'utf8')) as Recorded)
  } catch {
    return undefined
  }
}
