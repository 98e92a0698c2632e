import { lacksBrowser } from '../../scripts/testing/browser.ts'
import type { Case } from './case.ts'
import { coldStart } from './cold-start.ts'
import { crowd } from './crowd.ts'
import { depth, persistence } from './depth.ts'
import { fanOut } from './fan-out.ts'
import { fold, verify } from './fold.ts'
import { inspectorPage } from './inspector-page.ts'
import { inspector } from './inspector.ts'
import { list } from './list.ts'
import { machineLimits } from './machine-limits.ts'
import { resume } from './resume.ts'
import { session } from './session.ts'
import { showAt } from './show-at.ts'
import { text } from './text.ts'
import { wire } from './wire.ts'

/** Every case, in the order in which `pnpm bench` runs them. */
export const allCases: readonly Case[] = [
  ...[text, depth, fanOut, crowd, session, persistence],
  ...[wire, resume, fold, verify, list, inspector, showAt, coldStart, machineLimits],
  // A machine without Chromium measures all the others.
  ...(lacksBrowser ? [] : [inspectorPage]),
]
