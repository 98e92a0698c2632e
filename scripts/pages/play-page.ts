// Follows a page as its reader does: step by step, in one folder.
import { execFile } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { install } from './reader-folder.ts'
import { printsAs, type Step } from './page.ts'

const execute = promisify(execFile)

/** A difference from the page: the step, what the page says that it prints, and what it printed. */
export interface Difference {
  readonly step: string
  readonly said?: string
  readonly printed: string
}

/** Follows the steps of a page in a folder. Returns where something failed, or printed something else than the page says. */
export async function playPage(
  steps: readonly Step[],
  folder: string,
  env: Readonly<Record<string, string>>,
): Promise<readonly Difference[]> {
  const differences: Difference[] = []
  for (const [index, step] of steps.entries()) {
    const difference = await playStep(step, index, folder, env)
    if (difference) differences.push(difference)
  }
  return differences
}

async function playStep(
  step: Step,
  index: number,
  folder: string,
  env: Readonly<Record<string, string>>,
): Promise<Difference | undefined> {
  if (step.kind === 'install') {
    install(folder, step.packages)
    return undefined
  }
  if (step.kind === 'save') {
    save(folder, step.file, step.text)
    return undefined
  }
  const file = `program-${index + 1}.ts`
  if (step.kind === 'program') save(folder, file, step.text)
  const { failed, printed } = await shell(step.kind === 'program' ? `node ${file}` : step.text, folder, env)
  const { prints } = step
  const asSaid = prints === undefined ? !/model_failed|Error/.test(printed) : printsAs(prints, printed)
  if (asSaid && !failed) return undefined
  return { step: step.text, printed, ...(prints !== undefined && { said: prints }) }
}

function save(folder: string, file: string, text: string): void {
  const path = join(folder, file)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

/** The commands of a package are on the path, and `npx` runs them without asking a registry. */
const prelude = 'set -e\nexec 2>&1\nnpx() { command "$@"; }\n'

async function shell(
  commands: string,
  folder: string,
  env: Readonly<Record<string, string>>,
): Promise<{ readonly failed: boolean; readonly printed: string }> {
  const path = [join(folder, 'node_modules/.bin'), dirname(process.execPath), process.env['PATH']].join(':')
  const own = { ...process.env, ...env, PATH: path, NO_COLOR: '1', NODE_NO_WARNINGS: '1' }
  try {
    const { stdout } = await execute('bash', ['-c', prelude + commands], { cwd: folder, env: own })
    return { failed: false, printed: stdout }
  } catch (error) {
    const { stdout = '' } = error as { readonly stdout?: string }
    return { failed: true, printed: stdout }
  }
}
