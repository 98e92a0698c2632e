const usual = 300

/** How often a property is tried: as often as it says, and more in proportion where TALLYSTICK_RUNS is in the environment. */
export function runs(count: number): number {
  return Math.ceil((count * Number(process.env['TALLYSTICK_RUNS'] ?? usual)) / usual)
}
