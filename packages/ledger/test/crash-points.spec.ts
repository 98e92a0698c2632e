import { seededRandom } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { testSeed } from '../../../scripts/testing/seed.ts'
import { courseOf } from './support/crash-course.ts'
import { play } from './support/crash-play.ts'
import { choosePoints, parsePoint, pointText, type Point } from './support/crash-point.ts'
import { scenarios } from './support/crash-scenarios.ts'

/** Printed with every failure, as part of the place: `pnpm crashes --point` goes there again. */
const random = seededRandom(testSeed)

async function placeIn(scenario: string, kind: Point['kind']): Promise<Point> {
  const course = await courseOf('sqlite', scenario)
  const [point] = choosePoints([course], { store: 'sqlite', kind, count: 1 }, random)
  if (point === undefined) throw new Error(`${scenario} has no boundaries.`)
  return point
}

/** What went wrong, with the place; empty where nothing did. */
async function faultsAt(point: Point): Promise<readonly string[]> {
  const { violations } = await play(point, 'sqlite')
  return violations.map((violation) => `${pointText(point)}: ${violation}`)
}

/** `pnpm crashes` plays hundreds of places on both stores; here is one of each kind. */
const killed = scenarios.filter(({ name }) => name === 'child')
const stopped = ['approval']

describe('a process that is killed at some boundary of a run in SQLite', () => {
  it.each(killed)('in $name leaves what another takes to its end', async ({ name }) => {
    expect(await faultsAt(await placeIn(name, 'kill'))).toEqual([])
  })

  it('in the middle of a write lets no process start it again', async () => {
    const point = parsePoint('sqlite:kill:writes:0:1')
    const { boundaries } = await courseOf('sqlite', 'writes')
    expect(boundaries).toBeGreaterThan(100)
    const played = await play({ ...point, at: Math.floor(boundaries / 2) }, 'sqlite')
    expect(played).toMatchObject({ kills: 1, doubleStarts: 0, violations: [] })
  })
})

describe('a process that stands still at some boundary of a run in SQLite', () => {
  it.each(stopped)('in %s is overtaken, and adds nothing', async (name) => {
    expect(await faultsAt(await placeIn(name, 'stop'))).toEqual([])
  })
})

describe('places by name', () => {
  it('are chosen again by the same seed, each once before any comes twice', () => {
    const courses = [
      { scenario: 'a', fromStep: 0, boundaries: 5 },
      { scenario: 'b', fromStep: 1, boundaries: 0 },
      { scenario: 'c', fromStep: 0, boundaries: 3 },
    ]
    const chosen = (seed: number): readonly Point[] =>
      choosePoints(courses, { store: 'postgres', kind: 'kill', count: 10 }, seededRandom(seed))
    expect(chosen(7)).toEqual(chosen(7))
    expect(chosen(7)).not.toEqual(chosen(8))
    const ofFirst = chosen(7).filter(({ scenario }) => scenario === 'a')
    expect(ofFirst.map(({ at }) => at).toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5])
    expect(chosen(7).map(({ scenario }) => scenario)).not.toContain('b')
    for (const point of chosen(7)) expect(parsePoint(pointText(point))).toEqual(point)
  })

  it('are refused where they name none', () => {
    expect(() => parsePoint('sqlite:kill:writes')).toThrow(/names no point/)
  })
})
