import { coursesOn, playAll, pointsOf, type Plan } from '../../packages/ledger/test/support/crash-campaign.ts'
import type { Played } from '../../packages/ledger/test/support/crash-play.ts'
import { pointText, type Point } from '../../packages/ledger/test/support/crash-point.ts'
import type { Ground } from '../../packages/ledger/test/support/crash-site.ts'
import { showFailure, showFigures, showProgress } from './show.ts'

/** Kills and stops processes at the places of a plan, or at one; prints the figures, and answers the violations. */
export async function cutOffFigures(ground: Ground, plan: Plan, only?: Point): Promise<number> {
  const store = ground === 'sqlite' ? 'sqlite' : 'postgres'
  if (!only && plan.kills + plan.stops === 0) return 0
  const courses = only ? [] : await coursesOn(ground, plan)
  const points = only ? [only] : pointsOf(store, courses, plan)
  const played: Played[] = []
  await playAll(points, ground, (each) => {
    played.push(each)
    showProgress(store, played.length, points.length)
    if (each.violations.length === 0) return
    const place = pointText(each.point)
    const left = each.folder === undefined ? [] : [`left behind: ${each.folder}`]
    showFailure(place, [...each.violations, ...left], `--point '${place}'`)
  })
  const sum = (count: (each: Played) => number): number =>
    played.reduce((total, each) => total + count(each), 0)
  const stopped = played.filter(({ stoppedAt }) => stoppedAt !== undefined)
  showFigures(store, [
    [courses.reduce((total, { boundaries }) => total + boundaries, 0), 'boundaries'],
    [played.length, 'points'],
    [sum(({ kills }) => kills), 'kills'],
    [stopped.length, 'stopped and continued'],
    [stopped.filter(({ thawed }) => thawed !== 'nothing').length, 'of them refused'],
    [sum(({ events }) => events), 'events'],
    [sum(({ replays }) => replays), 'runs replayed'],
    [sum(({ repetitions }) => repetitions), 'starts again of tools that allow it'],
    [sum(({ doubleStarts }) => doubleStarts), 'of others'],
    [sum(({ violations }) => violations.length), 'violations'],
  ])
  return sum(({ violations }) => violations.length)
}
