import { seededRandom } from '@tallystick/testkit'
import { courseOf, type Course } from './crash-course.ts'
import { play, type Played } from './crash-play.ts'
import { choosePoints, type Point } from './crash-point.ts'
import type { Ground } from './crash-site.ts'
import type { Scenario } from './crash-user.ts'

/** How many points of each kind, the randomness that they are chosen by, and the scenarios that they are in. */
export interface Plan {
  readonly kills: number
  readonly stops: number
  readonly seed: number
  readonly played: readonly Scenario[]
}

/** Two keep a machine of two cores busy: one takes over while the other's process works. */
const maxPlayers = 2

/** The ways of scenarios, from each of their steps on. */
export async function coursesOn(
  ground: Ground,
  { played }: Pick<Plan, 'played'>,
): Promise<readonly Course[]> {
  const courses: Course[] = []
  for (const { name, steps } of played) {
    for (const fromStep of steps.keys()) courses.push(await courseOf(ground, name, fromStep))
  }
  return courses
}

/** The points of a plan, the same for the same seed and courses. */
export function pointsOf(
  store: Point['store'],
  courses: readonly Course[],
  { kills, stops, seed }: Omit<Plan, 'played'>,
): readonly Point[] {
  const random = seededRandom(seed)
  return [
    ...choosePoints(courses, { store, kind: 'kill', count: kills }, random),
    ...choosePoints(courses, { store, kind: 'stop', count: stops }, random),
  ]
}

/** Plays points, two at a time, and tells of each how it went. */
export async function playAll(
  points: readonly Point[],
  ground: Ground,
  hear: (played: Played) => void,
): Promise<void> {
  const left = [...points]
  const player = async (): Promise<void> => {
    for (let point = left.shift(); point !== undefined; point = left.shift()) hear(await play(point, ground))
  }
  await Promise.all(Array.from({ length: maxPlayers }, player))
}
