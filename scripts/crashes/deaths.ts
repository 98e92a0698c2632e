import { seededRandom } from '@tallystick/testkit'
import { surviveDeath, type Survived } from '../../packages/ledger/test/support/crash-deaths.ts'
import type { Plan } from '../../packages/ledger/test/support/crash-campaign.ts'
import { courseOf } from '../../packages/ledger/test/support/crash-course.ts'
import type { MortalServer } from '../../packages/ledger/test/support/crash-server.ts'
import { showFailure, showFigures, showProgress } from './show.ts'

/** Lets a server die amid scenarios, in turn, at places that follow from the seed; prints the figures, and answers the violations. */
export async function deathsFigures(
  server: MortalServer,
  { seed, count, played }: Omit<Plan, 'kills' | 'stops'> & { readonly count: number },
): Promise<number> {
  const random = seededRandom(seed)
  const survived: Survived[] = []
  const known = new Map<string, number>()
  const ground = { kind: 'postgres', connectionString: server.connectionString, schema: 'deaths' } as const
  for (let index = 0; index < count; index++) {
    const { name } = played[index % played.length] as Plan['played'][number]
    const boundaries = known.get(name) ?? (await courseOf(ground, name)).boundaries
    known.set(name, boundaries)
    const at = 1 + Math.floor(random() * boundaries)
    const each = await surviveDeath(server, { scenario: name, at })
    survived.push(each)
    showProgress('deaths', survived.length, count)
    if (each.violations.length === 0) continue
    showFailure(
      `death of the server in ${name} at ${at}`,
      each.violations,
      `--store postgres --points 0 --stops 0 --deaths ${count} --seed ${seed}`,
    )
  }
  const sum = (of: (each: Survived) => number): number =>
    survived.reduce((total, each) => total + of(each), 0)
  showFigures('server', [
    [survived.length, 'deaths'],
    [survived.filter(({ reported }) => reported !== undefined).length, 'of them told to a runtime'],
    [sum(({ events }) => events), 'events'],
    [sum(({ replays }) => replays), 'runs replayed'],
    [sum(({ lost }) => lost), 'lazy events lost, as they may be'],
    [sum(({ violations }) => violations.length), 'violations'],
  ])
  return sum(({ violations }) => violations.length)
}
