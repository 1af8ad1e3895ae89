#!/usr/bin/env node
import { existsSync } from 'node:fs';
import { requireNode } from './node-version.js';

const source = new URL('../src/main.ts', import.meta.url);
const built = new URL('../dist/main.js', import.meta.url);
const isCheckout = existsSync(source);

requireNode(isCheckout);
await import(isCheckout ? source : built);
