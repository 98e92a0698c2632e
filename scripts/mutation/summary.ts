import { areaNameOf } from './area.ts'
import type { Mutant } from './mutant.ts'
import type { Verdict } from './verdict.ts'

/** A table of what became of the mutants of each area. Those that do not compile count in no share. */
export function summaryOf(verdicts: readonly Verdict[], leftOut: readonly Mutant[]): string {
  const byArea = Map.groupBy(verdicts, ({ mutant }) => areaNameOf(mutant.path) ?? '')
  const head = ['area', 'killed', 'survived', 'refused', 'equivalent', 'share']
  const rows = [...byArea].map(([area, each]) => {
    const count = (...kinds: readonly Verdict['kind'][]): number =>
      each.filter(({ kind }) => kinds.includes(kind)).length
    const [killed, survived] = [count('killed', 'hung'), count('survived')]
    const equivalent = leftOut.filter(({ path }) => areaNameOf(path) === area).length
    const share = killed + survived === 0 ? '' : `${((100 * killed) / (killed + survived)).toFixed(1)} %`
    return [area, ...[killed, survived, count('refused'), equivalent].map(String), share]
  })
  return [head, ...rows]
    .map((row) =>
      row
        .map((cell) => cell.padEnd(14))
        .join('')
        .trimEnd(),
    )
    .join('\n')
}
