import type * as pg from 'pg'
import { type OptionalPackage, optionalPackage } from '../../optional-package.ts'

/** The driver of Postgres. */
export const pgPackage: OptionalPackage<typeof pg> = optionalPackage('pg', () => import('pg'))
