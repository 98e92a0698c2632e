import { fitsDemand } from '@tallystick/core/internal'
import type { Approver, Approvers } from '@tallystick/core/vocabulary'

/** Says of each demand on the approvers of a call how many have approved so far, and who: `1 of 2 with the role finance: ann`. */
export function describeDemands(
  demands: readonly Approvers[],
  given: readonly Approver[],
): readonly string[] {
  return demands.map((demand) => {
    const people = given.filter((person) => fitsDemand(demand, person)).map(({ by }) => by)
    const { count = 1, roles } = demand
    const whose = roles ? ` with the role ${roles.join(' or ')}` : ''
    const names = people.length > 0 ? `: ${people.join(', ')}` : ''
    return `${people.length} of ${count}${whose} approved so far${names}`
  })
}
