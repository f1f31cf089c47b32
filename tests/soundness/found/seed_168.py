# options: {}
def f(a, b, c, t, u):
    global G, N, D, T
    w = z = n = 0; m = 2; x = 'ab'; l = [3, 1]; d = {'a': 1, 'b': 2}; v = t; o = P(3); q = P(1, o)
    for x in D:
        turn1 = 0
        if len(LOG) > 60:
            break
        with M(True) as z, M(False):
            D['self'] = D
            u = {'a': t.dim(), 'k': [][0]}
            try:
                c = [u['a'], {'a': 1, 'k': True}]
            finally:
                n2 = 0
                while n2 < 2 and len(LOG) < 60:
                    n2 += 1
                    t = T
                    x = repr(P(0))
                    u['n'] = -1
                    if (a in t.tolist()):
                        continue
                G += G
                LOG.append([][-1])
        u = d
        v = torch.stack([t, t])
    m, n = -1, (b < t.dim())
    c = G.copy()
    x = ''
    o = q; o.x = (lambda i: i + m)(True)
    return w, z, n, l
