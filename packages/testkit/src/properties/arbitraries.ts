// What @tallystick/testkit/random exports: one module that stands on fast-check.
export { randomInput } from './random-input.ts'
export { randomTool } from './random-tool.ts'
export {
  randomClock,
  randomCrash,
  randomLedger,
  randomLimits,
  randomPeople,
  randomScript,
} from './random-trouble.ts'
