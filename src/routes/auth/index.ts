/** The authentication routes, in the order of the manual. */
import type { Route } from '../../http/route.ts';
import { jwks } from './jwks.ts';
import { login } from './login.ts';
import { logout } from './logout.ts';
import { me } from './me.ts';
import { refresh } from './refresh.ts';
import { register } from './register.ts';

export const authRoutes: readonly Route[] = [register, login, refresh, logout, me, jwks];
