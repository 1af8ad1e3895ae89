// Loaded before the scripts of a checkout, which an old Node cannot read.
import { requireNode } from '../bin/node-version.js';

requireNode(true);
