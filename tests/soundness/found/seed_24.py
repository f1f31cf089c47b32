# options: {}
def f(a, b, c, t, u):
    global G, N, D, T
    w = z = n = 0; m = 2; x = 'ab'; l = [3, 1]; d = {'a': 1, 'b': 2}; v = t; o = P(3); q = P(1, o)
    x = type(any(G)).__name__
    G, G = c, c
    t = torch.as_tensor(abs(b))
    del c[0]
    return o, q, u, w
