import { join, relative } from 'node:path'
import { testersOf } from '../area.ts'
import type { Memory } from '../memory.ts'
import { type Mutant, mutatedText } from '../mutant.ts'
import type { TestsOf } from '../reaching-tests.ts'
import type { Verdict } from '../verdict.ts'
import { Compiler } from './compiler.ts'
import type { Outcome } from './message.ts'
import { Tester } from './tester.ts'

/** What trying mutants needs. */
export interface Ground {
  readonly root: string
  /** How many mutants are tried at the same time. */
  readonly workers: number
  readonly memory: Memory
  readonly testsOf: TestsOf
  readonly sourceOf: (path: string) => string
  readonly show: (mutant: Mutant) => string
  /** Whether mutants that a test has noticed are printed as well. */
  readonly isVerbose: boolean
}

/**
 * Tries every mutant, and prints what survives as soon as it is known. Throws when a test that noticed a fault fails
 * without one, too: nothing would be proven.
 */
export async function tryAll(mutants: readonly Mutant[], ground: Ground): Promise<readonly Verdict[]> {
  const { root, workers, memory } = ground
  const compiler = new Compiler(root)
  const testers = Array.from({ length: workers }, () => {
    return new Tester((test, milliseconds) => memory.addMilliseconds(relative(root, test), milliseconds))
  })
  const verdicts: Verdict[] = []
  const noticing = new Set<string>()
  const next = mutants.values()
  try {
    await Promise.all(
      testers.map(async (tester) => {
        for (const mutant of next) {
          const verdict = await verdictOf(mutant, tester, compiler, ground)
          if (verdict.test !== undefined) noticing.add(join(root, verdict.test))
          verdicts.push(verdict)
          report(verdict, verdicts.length, mutants.length, ground)
        }
      }),
    )
    await control([...noticing], testers[0], root)
  } finally {
    for (const tester of testers) tester.close()
    compiler.close()
  }
  return verdicts
}

/** How many test files run before the compiler is asked: most mutants are noticed by then. */
const firstTests = 12

async function verdictOf(
  mutant: Mutant,
  tester: Tester,
  compiler: Compiler,
  ground: Ground,
): Promise<Verdict> {
  const { root, sourceOf } = ground
  const { path } = mutant
  const text = mutatedText(sourceOf(path), mutant)
  const [, name = ''] = path.split('/')
  const [tests = [], ...further] = testersOf(name).map((tester) =>
    ground.testsOf(tester, path, mutant.edit.start),
  )
  let isLoaded = false
  let isCompiled = false
  for (const some of [tests.slice(0, firstTests), tests.slice(firstTests), ...further]) {
    if (some.length > 0) {
      const absolute = some.map((test) => join(root, test))
      const outcome = await tester.run({ tests: absolute, path: join(root, path), text })
      if (outcome.kind !== 'passed') return noticedBy(mutant, outcome, ground)
      isLoaded ||= outcome.isLoaded
    }
    if (!(isCompiled ||= compiler.accepts(path, text)))
      return { mutant, kind: 'refused', how: 'the compiler refuses it' }
  }
  const nearest = tests.slice(0, 3).join(', ')
  const count = [tests, ...further].flat().length
  const how = isLoaded ? `${count} test files pass, among them ${nearest}` : 'no test calls it'
  return { mutant, kind: 'survived', how }
}

function noticedBy(mutant: Mutant, outcome: Exclude<Outcome, { kind: 'passed' }>, ground: Ground): Verdict {
  if (outcome.kind === 'hung') return { mutant, kind: 'hung', how: outcome.how }
  const test = relative(ground.root, outcome.test)
  ground.memory.addNoticed(mutant.path, test)
  return { mutant, kind: 'killed', how: `${test}: ${outcome.how}`, test }
}

function report(
  { mutant, kind, how }: Verdict,
  done: number,
  count: number,
  { show, isVerbose }: Ground,
): void {
  if (process.stdout.isTTY) process.stdout.write(`\r\u001B[K${done} of ${count}`)
  if (!isVerbose && (kind === 'killed' || kind === 'refused')) return
  if (process.stdout.isTTY) process.stdout.write('\r\u001B[K')
  console.log(`${kind}  ${show(mutant)}\n    ${how}`)
}

/** Runs the tests that noticed a fault without any fault. */
async function control(tests: readonly string[], tester: Tester | undefined, root: string): Promise<void> {
  const byPackage = Map.groupBy(tests, (test) => relative(root, test).split('/')[1])
  for (const group of byPackage.values()) {
    const outcome = await tester?.run({ tests: group })
    if (outcome?.kind === 'failed') {
      throw new Error(`${relative(root, outcome.test)} fails without any fault: ${outcome.how}`)
    }
  }
}
