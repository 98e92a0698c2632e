import { checkScenarios } from './crash-check-scenarios.ts'
import { personScenarios } from './crash-person-scenarios.ts'
import type { Scenario } from './crash-user.ts'
import { workScenarios } from './crash-work-scenarios.ts'

/** Every scripted run that processes are cut off in. */
export const scenarios: readonly Scenario[] = [...workScenarios, ...personScenarios, ...checkScenarios]

export function scenarioNamed(name: string): Scenario {
  const found = scenarios.find((scenario) => scenario.name === name)
  if (found) return found
  throw new Error(
    `No scenario is called ${name}. There are: ${scenarios.map((each) => each.name).join(', ')}.`,
  )
}
