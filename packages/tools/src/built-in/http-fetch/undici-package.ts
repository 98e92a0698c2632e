import type * as undici from 'undici'
import { type OptionalPackage, optionalPackage } from '../optional-package.ts'

/** The client that makes the requests. */
export const undiciPackage: OptionalPackage<typeof undici> = optionalPackage('undici', () => import('undici'))
